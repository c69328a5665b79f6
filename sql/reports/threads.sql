-- Threads: what each thread waited for, and how much of it in parallel.
--
-- Requests of one thread never overlap, those of several may share one wait:
-- then the sum over the threads is more than was really waited. Where tid is
-- not known, a row is a process; its own requests may overlap, wall_ns is less
-- than sync_time_sum_ns then, and the others in flight may be its own. Times
-- are over the requests with a known start and end.
--
-- Columns:
--   tid               id     Thread.
--   pid               id     Process, where known.
--   comm              text   Name of the thread.
--   process           text   Name of the process, where known.
--   syncs             count  Requests.
--   sync_time_sum_ns  ns     From the call (the start, with no call) to the
--                            end, summed.
--   wall_ns           ns     Time during which a request of its was in flight.
--   parallel_max      count  The most requests that were in flight at one
--                            moment of one of its own, over all threads, its
--                            own included.
--   parallel_avg      ratio  Requests in flight, its own included, averaged
--                            over sync_time_sum_ns.
--   overlap_ns        ns     Part of sync_time_sum_ns during which another
--                            thread's request was in flight, too.
--   overlap_share     share  overlap_ns / sync_time_sum_ns.
--   latency_sum_ns    ns     Syscall latency, summed.
--   bytes             bytes  Written back for them.
--   incomplete        count  Those whose start, end, or a bio is not in the
--                            log.
--   run               text   The run, where the input holds several.
WITH
  reach AS (
    SELECT
      run,
      sync_id,
      tid,
      pid,
      comm,
      process,
      incomplete,
      bytes,
      syscall_ns,
      dur_ns,
      ts_ns,
      ts_ns + dur_ns AS end_ns,
      -- How far the earlier ones reach: only what lies behind that is new.
      MAX(ts_ns + dur_ns) OVER (
        PARTITION BY
          run,
          tid,
          pid,
          comm,
          process
        ORDER BY ts_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ns
    FROM syncline_sync
  ),
  thread AS (
    SELECT
      reach.run,
      reach.tid,
      reach.pid,
      reach.comm,
      reach.process,
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
    GROUP BY
      reach.run,
      reach.tid,
      reach.pid,
      reach.comm,
      reach.process
  )
SELECT
  tid,
  pid,
  comm,
  process,
  syncs,
  CAST(sync_time_sum_ns AS BIGINT) AS sync_time_sum_ns,
  CAST(wall_ns AS BIGINT) AS wall_ns,
  parallel_max,
  CAST(parallel_ns AS DOUBLE) / NULLIF(sync_time_sum_ns, 0) AS parallel_avg,
  CAST(overlap_ns AS BIGINT) AS overlap_ns,
  CAST(overlap_ns AS DOUBLE) / NULLIF(sync_time_sum_ns, 0) AS overlap_share,
  CAST(latency_sum_ns AS BIGINT) AS latency_sum_ns,
  CAST(bytes AS BIGINT) AS bytes,
  incomplete,
  run
FROM thread
ORDER BY
  COALESCE(sync_time_sum_ns, 0) DESC,
  run,
  tid NULLS LAST,
  pid NULLS LAST,
  comm NULLS LAST,
  process NULLS LAST;
