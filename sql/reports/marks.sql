-- Marks: the cost of each mark of the application (table 6.1 of the thesis).
--
-- A sync belongs to each mark during which it begins. Latencies cover the
-- syncs that have one. wall_ns covers those with a known start and end, and
-- may extend beyond the end of the mark. A time is null if the mark has
-- syncs, but none with a known value. If marks overlap, a sync counts in
-- each of them, and more than once in a sum over the marks. Needs marks:
-- --marks FILE.
--
-- Columns:
--   mark_id           id     Key of the mark.
--   name              text   Name of the mark, as given.
--   ts_ns             time   Start of the mark.
--   dur_ns            ns     Duration of the mark.
--   syncs             count  Number of syncs.
--   empty             count  Number of syncs whose start and end were
--                            recorded, that succeeded and that
--                            caused no bio.
--   incomplete        count  Number of syncs whose start, end, call, or a
--                            bio is not in the log.
--   bytes             bytes  Bytes written back for them.
--   syscall_sum_ns    ns     Sum of the syscall latencies over all threads.
--   writeback_sum_ns  ns     Sum of the known writeback latencies over all
--                            threads. Null if only those of empty syncs are
--                            known.
--   wall_ns           ns     Time during which at least one of them was in
--                            flight.
--   run               text   Name of the run, if the input holds several.
WITH
  -- Syncs that are not the same as their request. The others are looked up by
  -- time in the table of requests: those of a view cannot be.
  apart AS MATERIALIZED (
    SELECT DISTINCT run, call_sync_id
    FROM syncline_sync
    WHERE call_sync_id <> sync_id OR op IN ('sync', 'syncfs')
  ),
  whole AS MATERIALIZED (
    SELECT
      sync.run, sync.ts_ns, sync.dur_ns, sync.incomplete, sync.bios, sync.ret,
      sync.bytes, sync.syscall_ns, sync.writeback_ns
    FROM syncline_sync_call AS sync
    JOIN apart
      ON apart.run = sync.run
      AND apart.call_sync_id = sync.call_sync_id
  ),
  in_mark AS (
    SELECT
      mark.run, mark.mark_id, sync.ts_ns, sync.dur_ns, sync.incomplete,
      sync.bios, sync.ret, sync.bytes, sync.syscall_ns, sync.writeback_ns
    -- CROSS JOIN makes SQLite look up the requests of each mark by time,
    -- instead of the marks of each request.
    FROM syncline_mark AS mark
    CROSS JOIN syncline_sync AS sync
    WHERE
      sync.run = mark.run
      AND sync.ts_ns >= mark.ts_ns
      AND sync.ts_ns < mark.ts_ns + mark.dur_ns
      AND (sync.run, sync.call_sync_id) NOT IN (
        SELECT run, call_sync_id FROM apart
      )
    UNION ALL
    SELECT
      mark.run, mark.mark_id, sync.ts_ns, sync.dur_ns, sync.incomplete,
      sync.bios, sync.ret, sync.bytes, sync.syscall_ns, sync.writeback_ns
    FROM syncline_mark AS mark
    CROSS JOIN whole AS sync
    WHERE
      sync.run = mark.run
      AND sync.ts_ns >= mark.ts_ns
      AND sync.ts_ns < mark.ts_ns + mark.dur_ns
  ),
  marked AS (
    SELECT
      run, mark_id, incomplete, bios, ret, bytes, syscall_ns, writeback_ns,
      ts_ns,
      ts_ns + dur_ns AS end_ns,
      MAX(ts_ns + dur_ns) OVER (
        PARTITION BY run, mark_id
        ORDER BY ts_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ns
    FROM in_mark
  ),
  counted AS (
    SELECT
      run, mark_id,
      COUNT(*) AS syncs,
      -- Unknown, not 0, if only calls were recorded.
      CAST(CASE
        WHEN COUNT(bios) > 0 THEN SUM(
          CASE
            WHEN incomplete IN ('start', 'end') THEN 0
            WHEN bios = 0
            AND COALESCE(ret, 0) >= 0 THEN 1
            ELSE 0
          END
        )
      END AS BIGINT) AS empty,
      COUNT(incomplete) AS incomplete,
      CAST(SUM(bytes) AS BIGINT) AS bytes,
      CAST(SUM(syscall_ns) AS BIGINT) AS syscall_ns,
      -- Unknown, not 0, if only empty syncs have one and others do not.
      CAST(CASE
        WHEN MAX(CASE WHEN bios > 0 THEN 1 END) IS NULL
        OR COUNT(CASE WHEN bios > 0 THEN writeback_ns END) > 0 THEN SUM(
          writeback_ns
        )
      END AS BIGINT) AS writeback_ns,
      SUM(
        CASE
          WHEN end_ns IS NULL THEN 0
          WHEN reached_ns IS NULL
          OR reached_ns <= ts_ns THEN end_ns - ts_ns
          WHEN reached_ns < end_ns THEN end_ns - reached_ns
          ELSE 0
        END
      ) AS wall_sum_ns,
      COUNT(end_ns) AS timed
    FROM marked
    GROUP BY run, mark_id
  )
SELECT
  mark.mark_id, mark.name, mark.ts_ns, mark.dur_ns,
  COALESCE(counted.syncs, 0) AS syncs,
  CASE WHEN counted.syncs > 0 THEN counted.empty ELSE 0 END AS empty,
  COALESCE(counted.incomplete, 0) AS incomplete,
  CASE WHEN counted.syncs > 0 THEN counted.bytes ELSE 0 END AS bytes,
  CASE WHEN counted.syncs > 0 THEN syscall_ns ELSE 0 END AS syscall_sum_ns,
  CASE WHEN counted.syncs > 0 THEN writeback_ns ELSE 0 END AS writeback_sum_ns,
  CAST(CASE
    WHEN counted.timed > 0 THEN counted.wall_sum_ns
    WHEN counted.syncs > 0 THEN NULL
    ELSE 0
  END AS BIGINT) AS wall_ns,
  mark.run
FROM syncline_mark AS mark
LEFT JOIN counted ON counted.run = mark.run AND counted.mark_id = mark.mark_id
ORDER BY mark.run, mark.mark_id;
