-- Threads: what each thread waited for, and how much of it in parallel.
--
-- Requests of one thread never overlap, but requests of several threads may,
-- so the sum over the threads may be more than the wall time. If no tid is
-- known, a row is a process, whose requests may overlap. Then wall_ns is less
-- than sync_time_sum_ns, and the other syncs in flight may belong to the same
-- process. Times cover the syncs with a known start and end.
--
-- Narrow: comm tid syncs sync_time_sum_ns latency_sum_ns wall_ns overlap_share
--  bytes pid
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
  thread AS (
    SELECT
      of!(sync, (run, tid, pid, comm, process)),
      COUNT(*) AS syncs,
      COUNT(incomplete) AS incomplete,
      SUM(bytes) AS bytes,
      SUM(syscall_ns) AS latency_ns,
      MAX(parallel_max) AS parallel_max,
      SUM(parallel_ns) AS parallel_ns,
      SUM(overlap_ns) AS overlap_ns
    FROM syncline_sync_call AS sync
    LEFT JOIN syncline_parallel AS parallel
      ON parallel.sync_id = sync.sync_id
      AND parallel.run = sync.run
    GROUP BY of!(sync, (run, tid, pid, comm, process))
  )
SELECT
  of!(thread, (tid, pid, comm, process)),
  syncs,
  time_ns AS sync_time_sum_ns,
  wall_ns, parallel_max,
  share!(parallel_ns, time_ns) AS parallel_avg,
  CAST(overlap_ns AS BIGINT) AS overlap_ns,
  share!(overlap_ns, time_ns) AS overlap_share,
  CAST(latency_ns AS BIGINT) AS latency_sum_ns,
  CAST(bytes AS BIGINT) AS bytes,
  incomplete, thread.run
FROM thread
JOIN wall_time!(syncline_sync_call, (run, tid, pid, comm, process)) AS wall
  ON same!(thread, wall, (run, tid, pid, comm, process))
ORDER BY
  thread.run,
  COALESCE(time_ns, 0) DESC,
  thread.tid NULLS LAST,
  thread.pid NULLS LAST,
  thread.comm NULLS LAST,
  thread.process NULLS LAST;
