-- Failures: the number of syncs, calls without a request, bios, and requests of
-- the block layer by their error. `error` is null for those that succeeded.
-- What has no recorded result is not counted.
SELECT
  'syncs' AS what,
  CASE WHEN ret < 0 THEN ret END AS error,
  COUNT(*) AS number
FROM syncline_sync_call
WHERE ret IS NOT NULL
GROUP BY 1, 2
UNION ALL
SELECT 'calls without a request', CASE WHEN ret < 0 THEN ret END, COUNT(*)
FROM syncline_call
WHERE unmatched AND ret IS NOT NULL
GROUP BY 1, 2
UNION ALL
SELECT
  CASE WHEN is_request THEN 'requests of the block layer' ELSE 'bios' END,
  CASE WHEN error < 0 THEN error END,
  COUNT(*)
FROM syncline_bio
WHERE error IS NOT NULL
GROUP BY 1, 2
ORDER BY 1 DESC, 2;
