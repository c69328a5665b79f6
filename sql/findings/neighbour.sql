-- Another program that uses the device or the journal.
--
-- Evidence is a process of the report neighbours that delayed at least 3 syncs
-- of others, by at least 5 % of the time of these. One row for each, the worst
-- first; its sync is the one that it delayed most.
--
-- Seen: {where} used the device while syncs of others waited.
--
-- Cost: the time in which they waited while the device worked for it, or for an
-- earlier commit that it started, summed over them; syncs at the same time
-- count each. It is an estimate; the note has its bounds.
--
-- Inferred: whose data a thread of the kernel writes follows from who made
-- pages of the file dirty, and whose handles a commit waits for from who used
-- the device meanwhile.
--
-- Instead: put its files on another device, run it at another time, or limit
-- its bandwidth (io.max of its control group). If it syncs or changes metadata,
-- a file system of its own helps, while a limit also holds back the commits
-- that others need. If most of its cost is for a CPU, give it less of that
-- (cpu.weight).
--
-- Needs: sync.start_ns sync.bios bio.dev bio.pid
--
-- Not checked: it needs the devices and the processes of all bios, which the
-- routes dynamic-events and ring-buffer record.
--
-- Columns:
--   sync_id   id     The sync that it delayed most.
--   ts_ns     time   Its start.
--   comm      text   Name of the process.
--   path      text   Null.
--   cost_ns   ns     What it cost, as the report neighbours has it.
--   note      prose  What it does, and the bounds of its cost.
--   from_ns   time   Null: it is a sum.
--   until_ns  time   Null.
--   run       text   Name of the run, if the input holds several.
SELECT
  neighbour.sync_id AS sync_id,
  sync.ts_ns AS ts_ns,
  neighbour.process AS comm,
  CAST(NULL AS VARCHAR) AS path,
  neighbour.cost_ns AS cost_ns,
  neighbour.kind || COALESCE('; control group ' || neighbour.cgroup, '')
  || '; the sum over '
  || CAST(neighbour.syncs AS TEXT)
  || ' of '
  || CAST(neighbour.of_syncs AS TEXT)
  || ' syncs of others, of which this one was delayed most; at least '
  || CAST(CAST(ROUND(neighbour.low_ns / 1000000.0) AS BIGINT) AS TEXT)
  || ' and at most '
  || CAST(CAST(ROUND(neighbour.high_ns / 1000000.0) AS BIGINT) AS TEXT)
  || ' ms'
  || CASE
    WHEN 2 * neighbour.cpu_ns >= neighbour.cost_ns THEN '; most of it for a CPU'
    ELSE ''
  END AS note,
  CAST(NULL AS BIGINT) AS from_ns,
  CAST(NULL AS BIGINT) AS until_ns,
  neighbour.run AS run
FROM _syncline_neighbour AS neighbour
JOIN syncline_sync AS sync
  ON sync.run = neighbour.run
  AND sync.sync_id = neighbour.sync_id
WHERE
  (neighbour.kind IN ('writes', 'reads', 'discards', 'syncs')
  OR (neighbour.kind = 'metadata' AND neighbour.high_ns IS NOT NULL))
  AND neighbour.share >= 0.05
  AND neighbour.syncs >= 3
ORDER BY
  neighbour.cost_ns DESC,
  neighbour.run, neighbour.process,
  neighbour.cgroup NULLS LAST;
