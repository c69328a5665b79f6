-- Waits of sync requests. The columns are those of
-- sql/tables/perfetto/wait.sql. Generated from sql/columns.toml by `python -m
-- tools.columns`.

CREATE OR REPLACE VIEW syncline_wait AS
SELECT
  sync_id, number, wait, ts_ns, dur_ns, transaction_id, commit_id, confidence,
  run
FROM _syncline_file_wait;
