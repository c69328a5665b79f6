-- Names of processes whose known control groups are all the same one.
--
-- A recorder looks up groups from time to time, so it misses those of commands
-- that end at once, such as the dd of a loop. Other commands of the same name
-- were there when it looked. If all of these are in one group, it is inferred
-- that the rest is, too: a process of another container would have to be new
-- at each look to stay unknown.
--
-- Result: a row for each such name of a run, with
--   run, process  The name, or that of the thread where a process has none.
--   cgroup        The control group.
--
-- Example: SELECT process, cgroup FROM only_groups!()
CREATE PERFETTO MACRO only_groups()
RETURNS TableOrSubquery
AS
(
  SELECT run, process, MIN(cgroup) AS cgroup
  FROM (
    SELECT of!(sync, (run, cgroup)), COALESCE(process, comm, '') AS process
    FROM syncline_sync AS sync
    UNION ALL
    SELECT run, cgroup, COALESCE(process, comm, '') FROM syncline_bio
    UNION ALL
    SELECT run, writers_cgroup, writers FROM syncline_bio
    UNION ALL
    SELECT run, cpu_cgroup, COALESCE(cpu_process, cpu_comm, '')
    FROM syncline_phase
    WHERE cpu_tid > 0
  ) AS _deed
  WHERE cgroup IS NOT NULL
  GROUP BY run, process
  HAVING MIN(cgroup) = MAX(cgroup)
);
