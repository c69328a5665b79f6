-- Known: the number of requests in which each column is known.
--
-- One row. `syncs` counts all requests, `with_bios` those with a bio: only they
-- have a time before the first bio and after the last one. The other columns
-- are those of syncline_sync.
--
-- Generated from sql/columns.toml by `python -m tools.columns`.
SELECT
  COUNT(dur_ns) AS dur_ns,
  COUNT(tid) AS tid,
  COUNT(pid) AS pid,
  COUNT(comm) AS comm,
  COUNT(process) AS process,
  COUNT(cgroup) AS cgroup,
  COUNT(op) AS op,
  COUNT(datasync) AS datasync,
  COUNT(path) AS path,
  COUNT(container_path) AS container_path,
  COUNT(dev) AS dev,
  COUNT(ino) AS ino,
  COUNT(fs) AS fs,
  COUNT(id) AS id,
  COUNT(ret) AS ret,
  COUNT(syscall_ns) AS syscall_ns,
  COUNT(writeback_ns) AS writeback_ns,
  COUNT(before_submit_ns) AS before_submit_ns,
  COUNT(after_complete_ns) AS after_complete_ns,
  COUNT(journal_ns) AS journal_ns,
  COUNT(flush_ns) AS flush_ns,
  COUNT(other_ns) AS other_ns,
  COUNT(cpu_wait_ns) AS cpu_wait_ns,
  COUNT(bytes) AS bytes,
  COUNT(folios) AS folios,
  COUNT(bios) AS bios,
  COUNT(ranges) AS ranges,
  COUNT(stack) AS stack,
  COUNT(start_ns) AS start_ns,
  COUNT(*) AS syncs,
  SUM(CASE WHEN bios > 0 THEN 1 ELSE 0 END) AS with_bios
FROM syncline_sync;
