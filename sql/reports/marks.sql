-- Marks: the cost of each mark of the application (table 6.1 of the thesis).
--
-- The report needs marks, from --marks FILE or from markers in the log. A sync
-- belongs to each mark during which it begins, so if marks overlap, it counts
-- in each of them, and more than once in a sum over the marks. Latencies cover
-- the syncs that have one. wall_ns covers the syncs with a known start and end
-- until they end, even after the mark, so it may be longer than dur_ns. A
-- figure is null if the mark has syncs, but none with a known value.
--
-- Narrow: name ts_ns dur_ns syncs wall_ns syscall_sum_ns bytes empty
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
  -- A row for each sync of each mark. A mark without syncs has one row, whose
  -- sync_id is null.
  marked AS (SELECT * FROM syncs_of_marks!()),
  -- The figures of each mark. Sums of one without syncs are 0, and not null.
  counted AS (
    SELECT
      run, mark_id,
      COUNT(sync_id) AS syncs,
      sum_where!(is_empty!(marked), sync_id IS NOT NULL) AS empty,
      COUNT(incomplete) AS incomplete,
      sum_where!(bytes, sync_id IS NOT NULL) AS bytes,
      sum_where!(syscall_ns, sync_id IS NOT NULL) AS syscall_ns,
      CAST(writeback_sum!(marked) AS BIGINT) AS writeback_ns
    FROM marked
    GROUP BY run, mark_id
  )
SELECT
  mark.mark_id, mark.name, mark.ts_ns, mark.dur_ns, syncs, empty, incomplete,
  bytes,
  syscall_ns AS syscall_sum_ns,
  CASE WHEN syncs > 0 THEN writeback_ns ELSE 0 END AS writeback_sum_ns,
  CASE WHEN syncs > 0 THEN wall_ns ELSE 0 END AS wall_ns,
  mark.run
FROM syncline_mark AS mark
JOIN counted ON counted.run = mark.run AND counted.mark_id = mark.mark_id
JOIN wall_time!(marked, (run, mark_id)) AS wall
  ON wall.run = mark.run
  AND wall.mark_id = mark.mark_id
ORDER BY mark.run, mark.mark_id;
