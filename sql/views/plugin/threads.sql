-- Threads: those with requests, by the time that they waited, most first, and a
-- request of each, by which tables/area.sql finds the thread.
SELECT
  tid, comm,
  MIN(sync_id) AS sync_id,
  COUNT(*) AS syncs,
  SUM(dur_ns) AS time_ns
FROM syncline_sync_call
WHERE dur_ns IS NOT NULL
GROUP BY tid, comm
ORDER BY time_ns DESC, tid, comm;
