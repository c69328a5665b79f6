-- Others: the requests that were in flight at the same time as a request, those
-- with the longest common time first. `others` is the number of all of them.
SELECT
  other.sync_id, other.op, other.path, other.comm, other.tid, other.dur_ns,
  MIN(other.ts_ns + other.dur_ns, own.ts_ns + own.dur_ns)
  - MAX(other.ts_ns, own.ts_ns) AS common_ns,
  found.slice_id,
  COUNT(*) OVER () AS others
FROM syncline_sync AS own
JOIN syncline_sync AS other
  ON other.ts_ns < own.ts_ns + own.dur_ns
  AND other.ts_ns + other.dur_ns > own.ts_ns
  AND other.sync_id <> own.sync_id
LEFT JOIN _syncline_plugin_slice AS found
  ON found.sync_id = other.sync_id
  AND NOT found.is_bio
WHERE own.sync_id = $sync_id
ORDER BY common_ns DESC, other.sync_id
LIMIT 8;
