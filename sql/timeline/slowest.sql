-- Slowest: the 20 syncs that waited longest, as slices named by latency and
-- file.
SELECT
  ts_ns AS ts,
  dur_ns AS dur,
  printf(
    '%.3g ms %s',
    dur_ns / 1e6,
    COALESCE(
      -- What follows the last slash.
      NULLIF(SUBSTR(path, LENGTH(RTRIM(path, REPLACE(path, '/', ''))) + 1), ''),
      path,
      op,
      'sync'
    )
  ) AS name
FROM syncline_sync
WHERE
  dur_ns IS NOT NULL
ORDER BY
  dur_ns DESC,
  sync_id
LIMIT 20;
