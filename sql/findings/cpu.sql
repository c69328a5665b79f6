-- Threads that could run, and got no CPU.
--
-- Evidence is a time in which a sync was in the phase cpu wait, of programs
-- whose syncs spent at least a fifth of their time in it, and with that at
-- least a twentieth of the time of all syncs. A sync may have several.
--
-- Seen: the threads of {syncs} of {of_syncs} could run, and waited for a
-- CPU: {where}.
--
-- Cost: the time in which a process had syncs in flight, and all of them waited
-- for a CPU. It is the most that more CPU time can save.
--
-- Instead: look for a limit first: nr_throttled grows in cpu.stat of the
-- control group if cpu.max holds it back. Without one, the CPUs are busy with
-- others: raise cpu.weight of the group, move what competes with it to other
-- CPUs (cpuset), or give the machine more of them. The evidence names the limit
-- if it is recorded, and who had the CPU until the thread got it.
--
-- Needs: sync.cpu_wait_ns
--
-- Not checked: it needs the switches of threads, which the route dynamic-events
-- records.
--
-- Columns:
--   sync_id   id     The sync.
--   ts_ns     time   Its start.
--   comm      text   Name of its thread.
--   path      text   Path of its file.
--   cost_ns   ns     Duration of the phase.
--   note      prose  The part of the time in syncs of its program.
--   from_ns   time   Start of the phase.
--   until_ns  time   Its end.
--   run       text   Name of the run, if the input holds several.
WITH
  request AS (
    SELECT
      sync.run AS run,
      sync.sync_id AS sync_id,
      ts_ns, dur_ns, comm, path, cgroup,
      COALESCE(process, comm, '') AS program
    FROM syncline_sync AS sync
    LEFT JOIN _syncline_of_kernel AS of_kernel
      ON of_kernel.run = sync.run
      AND of_kernel.sync_id = sync.sync_id
    WHERE of_kernel.sync_id IS NULL
  ),
  program AS (
    SELECT
      run, program,
      SUM(dur_ns) AS time_ns,
      SUM(SUM(dur_ns)) OVER (PARTITION BY run) AS all_ns
    FROM request
    GROUP BY run, program
  ),
  wait AS (
    SELECT
      request.*,
      phase.ts_ns AS from_ns,
      phase.dur_ns AS wait_ns,
      SUM(phase.dur_ns) OVER of_program AS program_ns
    FROM syncline_phase AS phase
    JOIN request ON request.run = phase.run AND request.sync_id = phase.sync_id
    WHERE phase.phase = 'cpu wait' AND phase.dur_ns > 0
    WINDOW of_program AS (PARTITION BY request.run, request.program)
  ),
  -- A text is a group, a tab, and all limits of it and of those above it.
  limits AS (
    SELECT
      run, value,
      SUBSTR(value, INSTR(value, 'cpu.max of ')) || ';' AS limit_text
    FROM syncline_meta
    WHERE key LIKE 'limits.%' AND INSTR(value, 'cpu.max of ') > 0
  ),
  before AS (
    SELECT
      run,
      MAX(CASE WHEN key = 'cpu_before.1' THEN value END) AS who,
      MAX(CASE WHEN key = 'cpu_idle_ns' THEN value END) AS idle_ns
    FROM syncline_meta
    WHERE key IN ('cpu_before.1', 'cpu_idle_ns')
    GROUP BY run
  )
SELECT
  wait.sync_id AS sync_id,
  wait.ts_ns AS ts_ns,
  wait.comm AS comm,
  wait.path AS path,
  wait.wait_ns AS cost_ns,
  CAST(CAST(ROUND(100.0 * program_ns / time_ns) AS BIGINT) AS TEXT)
  || ' % of the time in syncs of this program is cpu wait'
  || COALESCE(
    '; limit: ' || SUBSTR(limit_text, 1, INSTR(limit_text, ';') - 1),
    ''
  )
  || COALESCE(
    '; in all syncs, the CPU was idle before for '
    || CAST(CAST(ROUND(CAST(idle_ns AS BIGINT) / 1000000.0) AS BIGINT) AS TEXT)
    || ' ms',
    ''
  )
  || COALESCE(
    ' and ran ' || SUBSTR(who, INSTR(who, ' ') + 1) || ' for '
    || CAST(CAST(ROUND(
      CAST(SUBSTR(who, 1, INSTR(who, ' ') - 1) AS BIGINT) / 1000000.0
    ) AS BIGINT) AS TEXT)
    || ' ms',
    ''
  ) AS note,
  wait.from_ns AS from_ns,
  wait.from_ns + wait.wait_ns AS until_ns,
  wait.run AS run
FROM wait
JOIN program ON program.run = wait.run AND program.program = wait.program
LEFT JOIN limits
  ON limits.run = wait.run
  AND SUBSTR(limits.value, 1, LENGTH(wait.cgroup)) = wait.cgroup
  AND SUBSTR(limits.value, LENGTH(wait.cgroup) + 1, 1) < ' '
LEFT JOIN before ON before.run = wait.run
WHERE program_ns * 5 >= time_ns AND program_ns * 20 >= all_ns
ORDER BY cost_ns DESC, wait.run, wait.sync_id, from_ns;
