-- Files: the cost of the syncs of each file.
--
-- Latencies are syscall latencies of the requests that have one. A request
-- without a syscall (io_uring, O_DSYNC) has none: its cost is in
-- sync_time_sum_ns, which covers all requests with a known start and end. Bytes
-- cover all requests. The file with the highest cost comes first.
--
-- Columns:
--   path              text   Path of the file, or [unknown file].
--   syncs             count  Number of requests.
--   empty             count  Number of requests whose start and end were
--                            recorded, that succeeded and that
--                            caused no bio.
--   bytes             bytes  Bytes written back for them.
--   latency_sum_ns    ns     Sum of the syscall latencies.
--   latency_avg_ns    ns     Average syscall latency.
--   latency_p99_ns    ns     99th percentile, interpolated.
--   latency_max_ns    ns     Maximum syscall latency.
--   writeback_sum_ns  ns     Sum of the writeback latencies.
--   sync_time_sum_ns  ns     Sum of the durations, from the call (from the
--                            start without a call) to the end.
--   threads           count  Number of threads (of processes, if no thread is
--                            known).
--   incomplete        count  Number of requests whose start, end, or a bio is
--                            not in the log.
--   container_path    text   Path of the file in the container that syncs it.
--                            Null outside of containers and if unknown.
WITH
  file AS (
    SELECT
      COALESCE(path, '[unknown file]') AS path,
      MIN(container_path) AS container_path,
      COUNT(*) AS syncs,
      -- Unknown, not 0, if only calls were recorded.
      CASE
        WHEN COUNT(bios) > 0 THEN SUM(
          CASE
            WHEN incomplete IN ('start', 'end') THEN 0
            WHEN bios = 0
            AND COALESCE(ret, 0) >= 0 THEN 1
            ELSE 0
          END
        )
      END AS empty,
      COUNT(incomplete) AS incomplete,
      SUM(bytes) AS bytes,
      COUNT(syscall_ns) AS latencies,
      SUM(syscall_ns) AS latency_sum_ns,
      percentile(syscall_ns, 99) AS latency_p99_ns,
      MAX(syscall_ns) AS latency_max_ns,
      SUM(writeback_ns) AS writeback_sum_ns,
      SUM(dur_ns) AS sync_time_sum_ns
    FROM syncline_sync
    GROUP BY
      COALESCE(path, '[unknown file]')
  ),
  thread AS (
    SELECT COALESCE(path, '[unknown file]') AS path, run, tid, pid
    FROM syncline_sync
    GROUP BY
      COALESCE(path, '[unknown file]'),
      run,
      tid,
      pid
  ),
  threads AS (SELECT path, COUNT(*) AS threads FROM thread GROUP BY path)
SELECT
  file.path,
  file.syncs,
  CAST(file.empty AS BIGINT) AS empty,
  CAST(file.bytes AS BIGINT) AS bytes,
  CAST(file.latency_sum_ns AS BIGINT) AS latency_sum_ns,
  CAST(latency_sum_ns AS DOUBLE) / NULLIF(latencies, 0) AS latency_avg_ns,
  file.latency_p99_ns,
  file.latency_max_ns,
  CAST(file.writeback_sum_ns AS BIGINT) AS writeback_sum_ns,
  CAST(file.sync_time_sum_ns AS BIGINT) AS sync_time_sum_ns,
  threads.threads,
  file.incomplete,
  file.container_path
FROM file
JOIN threads ON threads.path = file.path
ORDER BY
  COALESCE(file.sync_time_sum_ns, 0) DESC,
  file.bytes DESC,
  file.path;
