-- Commits of journals. The columns are those of
-- sql/tables/perfetto/journal.sql. Generated from sql/columns.toml by `python
-- -m tools.columns`.

CREATE OR REPLACE VIEW syncline_journal AS
SELECT
  commit_id, kind, ts_ns, dur_ns, tid, pid, comm, dev, transaction_id,
  started_by, sync_id, syncs, status, reason, locking_ns, flushing_ns,
  logging_ns, incomplete, run
FROM _syncline_file_journal;
