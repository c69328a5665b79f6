-- Block I/O. The columns are those of sql/tables/perfetto/bio.sql. Generated
-- from sql/columns.toml by `python -m tools.columns`.

CREATE OR REPLACE VIEW syncline_bio AS
SELECT
  bio_id, sync_id, commit_id,
  -- Files hold it unsigned; trace_processor only has signed integers.
  CAST(CASE
    WHEN id > 9223372036854775807 THEN CAST(id AS HUGEINT)
    - 18446744073709551616
    ELSE id
  END AS BIGINT) AS id,
  ts_ns, dur_ns, queue_ns, device_ns, requeues, requeue_ns, parts, error, bio,
  dev, below, sector, bytes, folios, ranges, first_offset, last_offset,
  direction, is_request, rwbs, ino, path, tid, pid, comm, process, cgroup,
  writers, writers_cgroup, origin, confidence, incomplete, run
FROM _syncline_file_bio;
