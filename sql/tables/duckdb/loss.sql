-- Losses. The columns are those of sql/tables/perfetto/loss.sql. Generated from
-- sql/columns.toml by `python -m tools.columns`.

CREATE OR REPLACE VIEW syncline_loss AS
SELECT reason, severity, count, first_ts_ns, last_ts_ns, example, meaning, run
FROM _syncline_file_loss;
