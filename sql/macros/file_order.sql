-- The order of operations on files and syncs: one after the other by their
-- starts.
--
-- Result: a row for each, with
--   run      Name of the run.
--   is_sync  1 for a row of syncline_sync.
--   id       Its key there, or in syncline_file_op.
--   seq      Its number.
--   next_ns  The begin of the next call before which it had ended: of its
--            thread, or of any if `is_alone` of calls_on_files is 1. Null if
--            there is none.
--
-- Example: SELECT COUNT(*) FROM file_order!()
CREATE PERFETTO MACRO file_order()
RETURNS TableOrSubquery
AS
(
  SELECT
    run, is_sync, id,
    ROW_NUMBER() OVER (ORDER BY run, ts_ns, is_sync, id) AS seq,
    CASE
      WHEN is_alone = 1 THEN LEAD(ts_ns) OVER (
        PARTITION BY run
        ORDER BY ts_ns, is_sync, id
      )
      -- A row without a thread is followed by no other one of it.
      WHEN tid IS NOT NULL THEN LEAD(ts_ns) OVER (
        PARTITION BY run, tid
        ORDER BY ts_ns, is_sync, id
      )
    END AS next_ns
  FROM calls_on_files!()
);

-- Engine: duckdb. It computes a window without an order while rows come from a
-- sort, and keeps nothing of them.
CREATE PERFETTO MACRO file_order()
RETURNS TableOrSubquery
AS
(
  WITH
    _call AS (SELECT * FROM calls_on_files!() ORDER BY run, ts_ns, is_sync, id),
    _numbered AS (
      SELECT
        *,
        ROW_NUMBER() OVER () AS seq,
        LEAD(run) OVER _next AS _later_run,
        LEAD(ts_ns) OVER _next AS _later_ns
      FROM _call
      WINDOW _next AS ()
    ),
    _followed AS (
      SELECT
        *,
        LEAD(run) OVER _next AS _next_run,
        LEAD(tid) OVER _next AS _next_tid,
        LEAD(ts_ns) OVER _next AS _next_ns
      FROM (SELECT * FROM _numbered ORDER BY run, tid, seq) AS _of_threads
      WINDOW _next AS ()
    )
  SELECT
    run, is_sync, id, seq,
    CASE
      WHEN is_alone = 1 THEN CASE
        WHEN _later_run IS NOT DISTINCT FROM run THEN _later_ns
      END
      WHEN _next_tid = tid
      AND _next_run IS NOT DISTINCT FROM run THEN _next_ns
    END AS next_ns
  FROM _followed
);
