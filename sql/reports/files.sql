-- Files: the cost of the syncs of each file.
--
-- Latencies are syscall latencies of the syncs that have one. A sync without a
-- syscall (io_uring, O_DSYNC) has none, so its cost is in sync_time_sum_ns,
-- which covers all syncs with a known start and end. Bytes cover all syncs.
-- The file with the highest cost comes first. A sync of several files, or of
-- whole file systems, is in a row of its kind. If the input holds several runs,
-- a path has one row for all of them.
--
-- Narrow: path syncs latency_sum_ns latency_max_ns bytes latency_avg_ns
--  latency_p99_ns empty
--
-- Columns:
--   path              text   Path of the file, `inode N on MAJOR,MINOR` if only
--                            that is recorded, [several files],
--                            [whole file systems], or [unknown file].
--   syncs             count  Number of syncs.
--   empty             count  Number of syncs whose start and end were
--                            recorded, that succeeded and that
--                            caused no bio.
--   bytes             bytes  Bytes written back for them.
--   latency_sum_ns    ns     Sum of the syscall latencies.
--   latency_avg_ns    ns     Average syscall latency.
--   latency_p99_ns    ns     99th percentile, interpolated.
--   latency_max_ns    ns     Maximum syscall latency.
--   writeback_sum_ns  ns     Sum of the known writeback latencies. Null if only
--                            those of empty syncs are known.
--   sync_time_sum_ns  ns     Sum of the durations, from the call (from the
--                            start without a call) to the end.
--   threads           count  Number of threads (of processes, if no thread is
--                            known).
--   incomplete        count  Number of syncs whose start, end, call, or a
--                            bio is not in the log.
--   container_path    text   Path of the file in the container that syncs it,
--                            or the first of several in alphabetical order.
--                            Null outside of containers and if unknown.
WITH
  -- The threads that synced each file. A thread is a run, a tid and a pid: runs
  -- give the same numbers to different threads.
  file_thread AS (
    SELECT DISTINCT file_name!(sync) AS file, run, tid, pid
    FROM syncline_sync_call AS sync
  ),
  thread_count AS (
    SELECT file, COUNT(*) AS threads FROM file_thread GROUP BY file
  ),
  file AS (
    SELECT
      file_name!(sync) AS file,
      MIN(container_path) AS container_path,
      COUNT(*) AS syncs,
      SUM(is_empty!(sync)) AS empty,
      SUM(bytes) AS bytes,
      SUM(syscall_ns) AS latency_sum_ns,
      AVG(syscall_ns) AS latency_avg_ns,
      percentile(syscall_ns, 99) AS latency_p99_ns,
      MAX(syscall_ns) AS latency_max_ns,
      writeback_sum!(sync) AS writeback_sum_ns,
      SUM(dur_ns) AS sync_time_sum_ns,
      COUNT(incomplete) AS incomplete
    FROM syncline_sync_call AS sync
    GROUP BY 1
  )
SELECT
  file.file AS path,
  syncs,
  CAST(empty AS BIGINT) AS empty,
  CAST(bytes AS BIGINT) AS bytes,
  CAST(latency_sum_ns AS BIGINT) AS latency_sum_ns,
  latency_avg_ns, latency_p99_ns, latency_max_ns,
  CAST(writeback_sum_ns AS BIGINT) AS writeback_sum_ns,
  CAST(sync_time_sum_ns AS BIGINT) AS sync_time_sum_ns,
  threads, incomplete, container_path
FROM file
JOIN thread_count ON thread_count.file = file.file
ORDER BY COALESCE(sync_time_sum_ns, 0) DESC, bytes DESC, path;
