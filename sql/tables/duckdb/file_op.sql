-- Operations on files. The columns are those of
-- sql/tables/perfetto/file_op.sql. Generated from sql/columns.toml by `python
-- -m tools.columns`.

CREATE OR REPLACE VIEW syncline_file_op AS
SELECT
  op_id, ts_ns, dur_ns, tid, pid, comm, op, fd, path, to_path, flags, created,
  offset_bytes, bytes, ret, stack, confidence, incomplete, run
FROM _syncline_file_file_op;
