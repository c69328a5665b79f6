-- What the syncs that begin in marks took, summed over all marks.
--
-- Result: a row a measure, with
--   measure  syncs (their number), syscall_latency, writeback_latency,
--            writeback_amount, or sync_wall_time (within each mark).
--   total    The sum. Null if no value is known.
--   known    Of how many syncs the value is known. Null for syncs.
--   syncs    How many there are. Null for syncs.
--
-- Example: SELECT total FROM sums_of_marks!() WHERE measure = 'syncs'
CREATE PERFETTO MACRO sums_of_marks()
RETURNS TableOrSubquery
AS
(
  WITH
    _sync AS (SELECT * FROM syncs_of_marks!()),
    _sum(measure, total, known) AS (
      SELECT 'syscall_latency', SUM(syscall_ns), COUNT(syscall_ns) FROM _sync
      UNION ALL
      SELECT 'writeback_latency', SUM(writeback_ns), COUNT(writeback_ns)
      FROM _sync
      UNION ALL
      SELECT 'writeback_amount', SUM(bytes), COUNT(bytes) FROM _sync
      UNION ALL
      SELECT 'sync_wall_time', SUM(wall_ns), COALESCE(SUM(known), 0)
      FROM wall_time!(_sync, (run, mark_id))
    ),
    _count AS (SELECT COUNT(sync_id) AS _syncs FROM _sync)
  SELECT measure, total, known, _syncs AS syncs
  FROM _sum
  CROSS JOIN _count
  UNION ALL
  SELECT 'syncs', _syncs, NULL, NULL FROM _count
);
