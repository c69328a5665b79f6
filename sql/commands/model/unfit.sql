-- Unfit: what a replay cannot use, by reason.
--
-- Columns:
--   reason  text   lost: events are lost. unissued: bios of syncs whose device
--                  or issue is not known; flushes take no part in a replay.
--                  unfinished: bios of syncs without a completion. background:
--                  bios of no sync that lack their issue or completion. runs:
--                  runs of the input, if there are several. stacked: a device
--                  with others below it.
--   detail  text   What it concerns: a reason of losses, or a device.
--   number  count  How many.
SELECT
  'lost' AS reason,
  reason AS detail,
  CAST(SUM(count) AS BIGINT) AS number
FROM syncline_loss
WHERE
  severity = 'loss'
GROUP BY
  reason
UNION ALL
SELECT
  CASE WHEN dur_ns IS NULL THEN 'unfinished' ELSE 'unissued' END,
  COALESCE(dev, 'unknown'),
  COUNT(*)
FROM syncline_bio
WHERE
  sync_id IS NOT NULL
  AND direction IN ('write', 'read')
  AND (dur_ns IS NULL OR queue_ns IS NULL OR dev IS NULL)
GROUP BY
  1,
  2
UNION ALL
SELECT
  'background',
  COALESCE(dev, 'unknown'),
  COUNT(*)
FROM syncline_bio
WHERE
  sync_id IS NULL
  AND direction IN ('write', 'read')
  AND (dur_ns IS NULL OR queue_ns IS NULL OR dev IS NULL)
GROUP BY
  2
UNION ALL
SELECT
  'runs',
  '',
  COUNT(DISTINCT run)
FROM syncline_sync
HAVING
  COUNT(DISTINCT run) > 1
UNION ALL
SELECT 'stacked', SUBSTR(key, LENGTH('device_on.') + 1), COUNT(*)
FROM syncline_meta
WHERE
  key LIKE 'device_on.%'
  AND value <> ''
GROUP BY
  2
ORDER BY
  1,
  2;
