-- Lane: the requests of a thread, in the order of time, and their slices.
SELECT sync.ts_ns, sync.dur_ns, sync.path, found.slice_id
FROM syncline_sync AS sync
LEFT JOIN _syncline_plugin_slice AS found
  ON found.sync_id = sync.sync_id
  AND NOT found.is_bio
WHERE sync.tid IS $tid AND sync.comm IS $comm AND sync.dur_ns IS NOT NULL
ORDER BY sync.ts_ns, sync.sync_id;
