-- Waits of writes. The columns are those of sql/tables/perfetto/write_wait.sql.
-- Generated from sql/columns.toml by `python -m tools.columns`.

CREATE OR REPLACE VIEW syncline_write_wait AS
SELECT
  wait_id, ts_ns, dur_ns, tid, pid, comm, wait, dev, ino, path, bytes,
  transaction_id, holder_tid, holder_comm, bio_id, confidence, run
FROM _syncline_file_write_wait;
