-- Who had the CPU while syncs waited for one, or for a thread that waited for
-- one.
--
-- A worker or another thread of the kernel may work for anybody, so it is left
-- out. Nobody is to blame for a wait for an idle CPU.
--
-- Result: a row for each such phase, or part of one, in which a program had the
--   CPU, or nobody, with
--   run, sync_id, ts_ns, dur_ns  Of the phase.
--   process      Its name; that of the thread if that is not known.
--   cgroup       Its control group; where that is not recorded, the only one
--                of its name. Null if it is not known.
--   owner        Both in one text, as in owned_bios!. Null if nobody had it, or
--                a thread of the sync's own process.
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
    CASE
      WHEN _tid > 0
      AND (sync.pid = _pid) IS NOT TRUE THEN _wait.process || ' '
      || COALESCE(_wait.cgroup, _only.cgroup, '')
    END AS owner,
    is_exact
  FROM (
    SELECT
      run, sync_id, ts_ns, dur_ns,
      cpu_pid AS _pid,
      cpu_tid AS _tid,
      COALESCE(cpu_process, cpu_comm, '') AS process,
      cpu_cgroup AS cgroup,
      CASE cpu_confidence WHEN 'exact' THEN 1 ELSE 0 END AS is_exact
    FROM syncline_phase
    WHERE
      dur_ns > 0
      AND (cpu_tid = 0 OR (cpu_tid > 0 AND NOT is_kernel_thread!(cpu_comm)))
  ) AS _wait
  JOIN syncline_sync AS sync USING (run, sync_id)
  LEFT JOIN only_groups!() AS _only ON same!(_only, _wait, (run, process))
);
