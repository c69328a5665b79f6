-- Area writes: the waits of writes in a span of time that have their slice on
-- one of the tracks, by thread and by what they wait for.
SELECT
  w.comm, w.tid, w.wait,
  COUNT(*) AS waits,
  SUM(w.dur_ns) AS time_ns,
  MAX(w.dur_ns) AS max_ns,
  SUM(w.bytes) AS bytes,
  SUM(COUNT(*)) OVER () AS all_waits,
  SUM(SUM(w.dur_ns)) OVER () AS all_ns
FROM syncline_write_wait AS w
WHERE
  w.ts_ns < $end_ns
  AND w.ts_ns + w.dur_ns >= $start_ns
  AND ($all_tracks
  OR w.wait_id IN (
    SELECT extract_arg(arg_set_id, 'debug.wait_id')
    FROM slice
    WHERE category = 'syncline.write_wait' AND track_id IN ($tracks)
  ))
GROUP BY w.comm, w.tid, w.wait
ORDER BY time_ns DESC, w.tid, w.wait
LIMIT 10;
