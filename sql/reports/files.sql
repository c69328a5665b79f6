-- Files: what each file cost.
--
-- Latencies are syscall latencies, over the requests that have one: a request
-- without a syscall (io_uring, O_DSYNC) has none, and its cost shows in
-- sync_time_sum_ns, which is over all requests with a known start and end.
-- Bytes are those of all requests. The costliest file comes first.
--
-- Columns:
--   path              text   File; [unknown file] where it is not known.
--   syncs             count  Requests.
--   empty             count  Those of them, seen from start to end, that caused
--                            no bio.
--   bytes             bytes  Written back for them.
--   latency_sum_ns    ns     Syscall latency, summed.
--   latency_avg_ns    ns     Average.
--   latency_p99_ns    ns     99th percentile, interpolated.
--   latency_max_ns    ns     Longest.
--   writeback_sum_ns  ns     Writeback latency, summed.
--   sync_time_sum_ns  ns     From the call (the start, with no call) to the
--                            end, summed.
--   threads           count  Threads (processes, where no thread is known).
--   incomplete        count  Those whose start, end, or a bio is not in the
--                            log.
WITH
  file AS (
    SELECT
      COALESCE(path, '[unknown file]') AS path,
      COUNT(*) AS syncs,
      -- Where only calls are known, it is not known which were empty.
      CASE
        WHEN COUNT(bios) > 0 THEN SUM(
          CASE
            WHEN incomplete IN ('start', 'end') THEN 0
            WHEN bios = 0 THEN 1
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
  file.incomplete
FROM file
JOIN threads ON threads.path = file.path
ORDER BY
  COALESCE(file.sync_time_sum_ns, 0) DESC,
  file.bytes DESC,
  file.path;
