-- What the evidence of a finding adds up to.
--
-- cost_ns is the wall time that the syncs of the processes would have been
-- shorter by without the evidence: the time in which, of a process, something
-- was in flight, and all of it was evidence from from_ns to until_ns. Where a
-- finding has no such times, it is the sum of its costs, which is sum_ns.
-- wall_ns is the time in which at least one sync of a process was in flight,
-- summed over processes; where cost_ns is a sum over syncs, it is null, and
-- time_ns is the sum of the lengths of all syncs, because a sum is a part of a
-- sum. Both leave out the syncs of the kernel that are no evidence, and are
-- null if no evidence is a sync.
WITH
  evidence AS (SELECT :evidence),
  request AS (
    SELECT
      sync.run AS run,
      sync.sync_id AS sync_id,
      pid,
      CASE WHEN pid IS NULL THEN COALESCE(comm, '') END AS comm,
      ts_ns,
      ts_ns + dur_ns AS end_ns
    FROM syncline_sync AS sync
    LEFT JOIN _syncline_of_kernel AS of_kernel
      ON of_kernel.run = sync.run
      AND of_kernel.sync_id = sync.sync_id
    WHERE dur_ns > 0 AND of_kernel.sync_id IS NULL
  ),
  part AS (
    SELECT
      request.run AS run,
      request.pid AS pid,
      request.comm AS comm,
      later!(evidence.from_ns, request.ts_ns) AS from_ns,
      earlier!(evidence.until_ns, request.end_ns) AS until_ns
    FROM evidence
    JOIN request
      ON request.run = evidence.run
      AND request.sync_id = evidence.sync_id
    WHERE evidence.from_ns IS NOT NULL
  ),
  -- While all that is in flight is evidence, the weights are 0 in sum.
  interval AS (
    SELECT run, pid, comm, ts_ns, end_ns - ts_ns AS dur_ns, 1 AS weight
    FROM request
    UNION ALL
    SELECT run, pid, comm, from_ns, until_ns - from_ns, -1 FROM part
  ),
  wall AS (
    SELECT
      SUM(CASE WHEN depth > 0 THEN dur_ns END) AS wall_ns,
      SUM(CASE WHEN depth > 0 AND weight = 0 THEN dur_ns END) AS cost_ns
    FROM weighted_depth!(interval, weight, (run, pid, comm))
  ),
  long AS (
    SELECT SUM(dur_ns) AS time_ns
    FROM syncline_sync_call AS call
    LEFT JOIN _syncline_of_kernel AS of_kernel
      ON of_kernel.run = call.run
      AND of_kernel.sync_id = call.call_sync_id
    WHERE of_kernel.sync_id IS NULL
  ),
  counted AS (
    SELECT
      COUNT(*) AS parts,
      COUNT(from_ns) AS timed,
      COUNT(sync_id) AS of_syncs,
      SUM(cost_ns) AS sum_ns
    FROM evidence
  ),
  distinct_syncs AS (
    SELECT COUNT(*) AS syncs
    FROM (
      SELECT DISTINCT
        evidence.run,
        COALESCE(sync.call_sync_id, evidence.sync_id, -evidence.ts_ns)
      FROM evidence
      LEFT JOIN syncline_sync AS sync
        ON sync.run = evidence.run
        AND sync.sync_id = evidence.sync_id
    ) AS one
  )
SELECT
  distinct_syncs.syncs AS syncs,
  CAST(CASE
    WHEN counted.timed > 0 THEN COALESCE(wall.cost_ns, 0)
    ELSE counted.sum_ns
  END AS BIGINT) AS cost_ns,
  CAST(counted.sum_ns AS BIGINT) AS sum_ns,
  CAST(CASE
    WHEN counted.of_syncs > 0
    AND counted.timed > 0 THEN wall.wall_ns
  END AS BIGINT) AS wall_ns,
  CAST(CASE
    WHEN counted.of_syncs > 0
    AND counted.timed = 0 THEN long.time_ns
  END AS BIGINT) AS time_ns
FROM counted
CROSS JOIN distinct_syncs
CROSS JOIN wall
CROSS JOIN long;
