-- Area: the requests in a span of time that have a slice, or a bio, on one of
-- the tracks, or that are in the lane of their thread. Each is there once. The
-- lanes have a request for each thread, and none whose length is not known.
CREATE OR REPLACE PERFETTO TABLE _syncline_plugin_area AS
WITH
  lane AS MATERIALIZED (
    SELECT DISTINCT tid, comm FROM syncline_sync WHERE sync_id IN ($lanes)
  )
SELECT sync_id, ts_ns, dur_ns, path, comm, tid, stack, bytes
FROM syncline_sync
WHERE
  ts_ns < $end_ns
  AND ts_ns + COALESCE(dur_ns, 0) >= $start_ns
  AND ($all_tracks
  OR sync_id IN (
    SELECT sync_id FROM _syncline_plugin_slice WHERE track_id IN ($tracks)
  )
  OR (dur_ns IS NOT NULL
  AND EXISTS (
    SELECT 1
    FROM lane
    WHERE lane.tid IS syncline_sync.tid AND lane.comm IS syncline_sync.comm
  )))
ORDER BY sync_id;
