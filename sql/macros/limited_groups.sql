-- Control groups of syncs whose CPU time is limited (cpu.max), by a limit of
-- their own or of a group above.
--
-- The scheduler holds back the threads of such a group, whoever else runs.
--
-- Result: a row for each such group of a run, with
--   run, cgroup  The group.
--
-- Example: SELECT cgroup FROM limited_groups!(syncline_sync)
CREATE PERFETTO MACRO limited_groups(
  -- Table of syncs with `run` and `cgroup`, which may be inferred.
  syncs TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT DISTINCT _sync.run AS run, _sync.cgroup AS cgroup
  FROM $syncs AS _sync
  -- A text is a group, a tab, and all limits of it and of those above it.
  JOIN syncline_meta AS limits
    ON limits.run = _sync.run
    AND limits.key LIKE 'limits.%'
    AND INSTR(limits.value, 'cpu.max of ') > 0
    AND SUBSTR(limits.value, 1, LENGTH(_sync.cgroup)) = _sync.cgroup
    AND SUBSTR(limits.value, LENGTH(_sync.cgroup) + 1, 1) < ' '
);
