-- Area: the requests in a span of time that have a slice, or a bio, on one of
-- the tracks. Each is there once.
CREATE OR REPLACE PERFETTO TABLE _syncline_plugin_area AS
SELECT sync_id, ts_ns, dur_ns, path, comm, tid, stack, bytes
FROM syncline_sync
WHERE
  ts_ns < $end_ns
  AND ts_ns + COALESCE(dur_ns, 0) >= $start_ns
  AND ($all_tracks
  OR sync_id IN (
    SELECT sync_id FROM _syncline_plugin_slice WHERE track_id IN ($tracks)
  ))
ORDER BY
  sync_id;
