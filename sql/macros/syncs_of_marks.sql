-- The syncs of each mark: those that begin during it.
--
-- Result: a row for each mark and sync, with the keys of the mark and columns
--   of the sync. A mark without syncs has one row, where those are null.
--
-- Example: SELECT mark_id, COUNT(sync_id) FROM syncs_of_marks!()
--   GROUP BY mark_id
CREATE PERFETTO MACRO syncs_of_marks()
RETURNS TableOrSubquery
AS
(
  SELECT
    mark.run, mark.mark_id, sync.sync_id, sync.ts_ns, sync.dur_ns,
    sync.incomplete, sync.bios, sync.ret, sync.bytes, sync.syscall_ns,
    sync.writeback_ns
  -- LEFT JOIN makes SQLite look up the syncs of each mark by time.
  FROM syncline_mark AS mark
  LEFT JOIN syncline_sync_call AS sync
    ON sync.run = mark.run
    AND sync.ts_ns >= mark.ts_ns
    AND sync.ts_ns < mark.ts_ns + mark.dur_ns
);
