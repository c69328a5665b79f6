-- Phases of sync requests. The columns are those of
-- sql/tables/perfetto/phase.sql. Generated from sql/columns.toml by `python -m
-- tools.columns`.

CREATE OR REPLACE VIEW syncline_phase AS
SELECT
  sync_id, number, phase, ts_ns, dur_ns, cpu_tid, cpu_pid, cpu_comm,
  cpu_process, cpu_cgroup, cpu_confidence, run
FROM _syncline_file_phase;
