-- Queued: the thread whose syncs spent most time in the phase queue. Those of
-- one thread do not overlap, so the sum is the time that passed.
SELECT
  sync.comm AS comm,
  MIN(sync.cgroup) AS cgroup,
  COUNT(DISTINCT sync.cgroup) AS cgroups,
  CAST(SUM(phase.dur_ns) AS BIGINT) AS queue_ns
FROM syncline_phase AS phase
JOIN syncline_sync AS sync
  ON sync.run = phase.run
  AND sync.sync_id = phase.sync_id
WHERE phase.phase = 'queue'
GROUP BY sync.run, sync.tid, sync.pid, sync.comm
ORDER BY 4 DESC, sync.comm
LIMIT 1;
