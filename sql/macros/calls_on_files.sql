-- Operations on files, and the syncs of whole files or file systems.
--
-- Result: a row for each, with
--   run      Name of the run.
--   is_sync  1 for a row of syncline_sync.
--   id       Its key there, or in syncline_file_op.
--   ts_ns    When it began.
--   tid      Its thread. Null if it is not known.
--
-- Example: SELECT is_sync, COUNT(*) FROM calls_on_files!() GROUP BY is_sync
CREATE PERFETTO MACRO calls_on_files()
RETURNS TableOrSubquery
AS
(
  SELECT run, 0 AS is_sync, op_id AS id, ts_ns, tid FROM syncline_file_op
  UNION ALL
  SELECT run, 1, sync_id, ts_ns, tid
  FROM syncline_sync
  WHERE
    sync_id = call_sync_id
    AND COALESCE(op, 'fsync') NOT IN ('write', 'sync_file_range', 'msync')
);
