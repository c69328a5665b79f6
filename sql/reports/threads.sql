-- Threads: what each thread waited for, and how much of it in parallel.
--
-- Requests of one thread never overlap. Requests of several threads may
-- overlap, so the sum over the threads may be more than the wall time. If no
-- tid is known, a row is a process. Requests of a process may overlap. Then
-- wall_ns is less than sync_time_sum_ns, and the other syncs in flight may
-- belong to the same process. Times cover the syncs with a known start and
-- end.
--
-- Columns:
--   tid               id     Thread id.
--   pid               id     Process id, if known.
--   comm              text   Name of the thread.
--   process           text   Name of the process, if known.
--   syncs             count  Number of syncs.
--   sync_time_sum_ns  ns     Sum of the durations of its syncs, from the
--                            call (from sync_start without a call) to the end.
--   wall_ns           ns     Time during which at least one of its syncs was
--                            in flight.
--   parallel_max      count  Maximum number of syncs of all threads that
--                            were in flight during one of its syncs, that
--                            sync included.
--   parallel_avg      ratio  Number of syncs in flight, its own included,
--                            averaged over sync_time_sum_ns.
--   overlap_ns        ns     Part of sync_time_sum_ns during which a sync of
--                            another thread was in flight too.
--   overlap_share     share  overlap_ns / sync_time_sum_ns.
--   latency_sum_ns    ns     Sum of the syscall latencies.
--   bytes             bytes  Bytes written back for its syncs.
--   incomplete        count  Number of syncs whose start, end, call, or a
--                            bio is not in the log.
--   run               text   Name of the run, if the input holds several.
WITH
  reach AS (
    SELECT
      run, sync_id, tid, pid, comm, process, incomplete, bytes, syscall_ns,
      dur_ns, ts_ns,
      ts_ns + dur_ns AS end_ns,
      -- The latest end of the earlier requests. Later time adds to wall_ns.
      MAX(ts_ns + dur_ns) OVER (
        PARTITION BY run, tid, pid, comm, process
        ORDER BY ts_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ns
    FROM syncline_sync_call
  ),
  thread AS (
    SELECT
      reach.run, reach.tid, reach.pid, reach.comm, reach.process,
      COUNT(*) AS syncs,
      COUNT(reach.incomplete) AS incomplete,
      SUM(reach.bytes) AS bytes,
      SUM(reach.syscall_ns) AS latency_sum_ns,
      SUM(reach.dur_ns) AS sync_time_sum_ns,
      SUM(
        CASE
          WHEN reach.dur_ns IS NULL THEN NULL
          WHEN reached_ns IS NULL
          OR reached_ns <= ts_ns THEN reach.dur_ns
          WHEN reached_ns < end_ns THEN end_ns - reached_ns
          ELSE 0
        END
      ) AS wall_ns,
      MAX(parallel.parallel_max) AS parallel_max,
      SUM(parallel.parallel_ns) AS parallel_ns,
      SUM(parallel.overlap_ns) AS overlap_ns
    FROM reach
    LEFT JOIN syncline_parallel AS parallel
      ON parallel.sync_id = reach.sync_id
      AND parallel.run = reach.run
    GROUP BY reach.run, reach.tid, reach.pid, reach.comm, reach.process
  )
SELECT
  tid, pid, comm, process, syncs,
  CAST(sync_time_sum_ns AS BIGINT) AS sync_time_sum_ns,
  CAST(wall_ns AS BIGINT) AS wall_ns,
  parallel_max,
  CAST(parallel_ns AS DOUBLE) / NULLIF(sync_time_sum_ns, 0) AS parallel_avg,
  CAST(overlap_ns AS BIGINT) AS overlap_ns,
  CAST(overlap_ns AS DOUBLE) / NULLIF(sync_time_sum_ns, 0) AS overlap_share,
  CAST(latency_sum_ns AS BIGINT) AS latency_sum_ns,
  CAST(bytes AS BIGINT) AS bytes,
  incomplete, run
FROM thread
ORDER BY
  run,
  COALESCE(sync_time_sum_ns, 0) DESC,
  tid NULLS LAST,
  pid NULLS LAST,
  comm NULLS LAST,
  process NULLS LAST;
