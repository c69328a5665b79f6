-- Slowest: the syncs that waited longest, the longest first, and their slices.
WITH
  slowest AS (
    SELECT
      sync_id, call_sync_id, ts_ns, dur_ns, op,
      COALESCE(path, what) AS path,
      comm, tid, bytes, bios, ret
    FROM syncline_sync_call
    WHERE dur_ns IS NOT NULL
    ORDER BY dur_ns DESC, sync_id
    LIMIT $most
  )
SELECT slowest.*, found.slice_id
FROM slowest
LEFT JOIN _syncline_plugin_slice AS found
  ON found.sync_id = slowest.sync_id
  AND NOT found.is_bio
ORDER BY dur_ns DESC, slowest.sync_id;
