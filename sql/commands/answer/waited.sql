-- Waited: the control group whose syncs waited longest for a CPU.
SELECT sync.cgroup AS cgroup, CAST(SUM(phase.dur_ns) AS BIGINT) AS wait_ns
FROM syncline_phase AS phase
JOIN syncline_sync AS sync
  ON sync.run = phase.run
  AND sync.sync_id = phase.sync_id
WHERE phase.phase = 'cpu wait' AND sync.cgroup IS NOT NULL
GROUP BY sync.run, sync.cgroup
ORDER BY 2 DESC, sync.cgroup
LIMIT 1;
