-- Sync requests. The columns are those of sql/tables/perfetto/sync.sql.
-- Generated from sql/columns.toml by `python -m tools.columns`.

CREATE OR REPLACE VIEW syncline_sync AS
SELECT
  ts_ns, dur_ns, tid, pid, comm, process, cgroup, op, datasync, path,
  container_path, dev, ino, fs,
  -- Files hold it unsigned; trace_processor only has signed integers.
  CAST(CASE
    WHEN id > 9223372036854775807 THEN CAST(id AS HUGEINT)
    - 18446744073709551616
    ELSE id
  END AS BIGINT) AS id,
  ret, syscall_ns, writeback_ns, before_submit_ns, after_complete_ns,
  journal_ns, flush_ns, other_ns, cpu_wait_ns, bytes, folios, bios, ranges,
  first_offset, last_offset, stack, confidence, incomplete, sync_id, start_ns,
  COALESCE(call_sync_id, sync_id) AS call_sync_id,
  run
FROM _syncline_file_sync;
