-- Sync calls. The columns are those of sql/tables/perfetto/call.sql. Generated
-- from sql/columns.toml by `python -m tools.columns`.

CREATE OR REPLACE VIEW syncline_call AS
SELECT
  call_id, ts_ns, dur_ns, tid, pid, comm, op, ret, stack, sync_id, unmatched,
  run
FROM _syncline_file_call;
