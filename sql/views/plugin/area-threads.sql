-- Area threads: the threads with the most time.
SELECT
  comm, tid,
  COUNT(*) AS syncs,
  SUM(dur_ns) AS time_ns,
  MAX(dur_ns) AS max_ns,
  COUNT(*) OVER () AS items
FROM _syncline_plugin_area
GROUP BY comm, tid
ORDER BY time_ns DESC, tid
LIMIT 10;
