-- Control groups of syncs whose CPU time is limited (cpu.max), by a limit of
-- their own or of a group above.
--
-- The scheduler holds back the threads of such a group, whoever else runs.
--
-- Result: a row for each such group of a run, with
--   run, cgroup  The group.
--
-- Example: SELECT cgroup FROM limited_groups!()
CREATE PERFETTO MACRO limited_groups()
RETURNS TableOrSubquery
AS
(
  SELECT DISTINCT sync.run AS run, sync.cgroup AS cgroup
  FROM syncline_sync AS sync
  -- A text is a group, a tab, and all limits of it and of those above it.
  JOIN syncline_meta AS limits
    ON limits.run = sync.run
    AND limits.key LIKE 'limits.%'
    AND INSTR(limits.value, 'cpu.max of ') > 0
    AND SUBSTR(limits.value, 1, LENGTH(sync.cgroup)) = sync.cgroup
    AND SUBSTR(limits.value, LENGTH(sync.cgroup) + 1, 1) < ' '
);
