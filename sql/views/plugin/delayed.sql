-- Delayed: the requests that were in flight while the device had a bio, those
-- with the longest common time first. `others` is the number of all of them.
SELECT
  sync.sync_id, sync.op, sync.path, sync.comm, sync.tid, sync.dur_ns,
  MIN(sync.ts_ns + sync.dur_ns, bio.ts_ns + bio.dur_ns)
  - MAX(sync.ts_ns, bio.ts_ns + COALESCE(bio.queue_ns, 0)) AS common_ns,
  found.slice_id,
  COUNT(*) OVER () AS others
FROM syncline_bio AS bio
JOIN syncline_sync AS sync
  ON sync.ts_ns < bio.ts_ns + bio.dur_ns
  AND sync.ts_ns + sync.dur_ns > bio.ts_ns + COALESCE(bio.queue_ns, 0)
  AND (sync.dev IS NULL OR bio.dev IS NULL OR sync.dev = bio.dev)
LEFT JOIN _syncline_plugin_slice AS found
  ON found.sync_id = sync.sync_id
  AND NOT found.is_bio
WHERE bio.bio_id = $bio_id
ORDER BY common_ns DESC, sync.sync_id
LIMIT 8;
