-- Operations on files, and the syncs of whole files or file systems.
--
-- Result: a row for each, with
--   run       Name of the run.
--   is_sync   1 for a row of syncline_sync.
--   id        Its key there, or in syncline_file_op.
--   ts_ns     When it began.
--   tid       Its thread. Null if it is not known.
--   is_alone  1 if it had returned before the next call of any thread began, as
--             a call without a duration had that no other line interrupts.
--
-- Example: SELECT is_sync, COUNT(*) FROM calls_on_files!() GROUP BY is_sync
CREATE PERFETTO MACRO calls_on_files()
RETURNS TableOrSubquery
AS
(
  WITH
    -- Where a line interrupts each call that returns after it.
    _interrupting AS (
      SELECT run FROM syncline_meta WHERE key = 'interrupted_calls'
    )
  SELECT
    run,
    0 AS is_sync,
    op_id AS id,
    ts_ns, tid,
    CASE
      WHEN dur_ns IS NULL
      AND ret IS NOT NULL
      AND run IN (SELECT run FROM _interrupting) THEN 1
      ELSE 0
    END AS is_alone
  FROM syncline_file_op
  UNION ALL
  SELECT
    run, 1, sync_id, ts_ns, tid,
    CASE
      WHEN dur_ns IS NULL
      AND ret IS NOT NULL
      AND run IN (SELECT run FROM _interrupting) THEN 1
      ELSE 0
    END
  FROM syncline_sync
  WHERE
    sync_id = call_sync_id
    AND COALESCE(op, 'fsync') NOT IN ('write', 'sync_file_range', 'msync')
);
