-- Marks. The columns are those of sql/tables/perfetto/mark.sql. Generated from
-- sql/columns.toml by `python -m tools.columns`.

CREATE OR REPLACE VIEW syncline_mark AS
SELECT mark_id, ts_ns, dur_ns, name, run FROM _syncline_file_mark;
