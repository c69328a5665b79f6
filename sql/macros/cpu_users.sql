-- Which programs had the CPU while syncs waited for one, or for a thread that
-- waited for one.
--
-- A worker or another thread of the kernel may work for anybody, and a thread
-- of the sync's own process is no other program, so both are left out.
--
-- Result: a row for each such phase, or part of one, with
--   run, sync_id, ts_ns, dur_ns  Of the phase.
--   process      Name of the process that had the CPU; that of the thread if
--                it is not known.
--   cgroup       Its control group; where that is not recorded, the only one
--                of its name. Null if it is not known.
--   owner        Both in one text, as in owned_bios!.
--   is_exact     1 if that is recorded, 0 if it is inferred.
--
-- Example: SELECT process, SUM(dur_ns) FROM cpu_users!() GROUP BY process
CREATE PERFETTO MACRO cpu_users()
RETURNS TableOrSubquery
AS
(
  SELECT
    of!(_wait, (run, sync_id, ts_ns, dur_ns, process)),
    COALESCE(_wait.cgroup, _only.cgroup) AS cgroup,
    _wait.process || ' ' || COALESCE(_wait.cgroup, _only.cgroup, '') AS owner,
    is_exact
  FROM (
    SELECT
      run, sync_id, ts_ns, dur_ns,
      cpu_pid AS _pid,
      COALESCE(cpu_process, cpu_comm, '') AS process,
      cpu_cgroup AS cgroup,
      CASE cpu_confidence WHEN 'exact' THEN 1 ELSE 0 END AS is_exact
    FROM syncline_phase
    WHERE dur_ns > 0 AND cpu_tid > 0 AND NOT is_kernel_thread!(cpu_comm)
  ) AS _wait
  JOIN syncline_sync AS sync USING (run, sync_id)
  LEFT JOIN only_groups!() AS _only ON same!(_only, _wait, (run, process))
  WHERE (sync.pid = _pid) IS NOT TRUE
);
