-- Another program that uses the device.
--
-- Evidence is a bystander of the report bystanders that took at least 5 % of
-- the time of the slowest syncs, and was ahead of at least 3 of them: a thread
-- of a process that makes no sync itself. One row for each; its sync is the one
-- that waited longest.
--
-- Seen: {where} had bios ahead of the slowest syncs, and made no sync.
--
-- Cost: the time in which such bios were ahead, summed over the slowest syncs.
-- It is the most that they may have cost; syncs at the same time count each.
--
-- Inferred: that it is a program. Threads of the kernel are left out, by their
-- names. That it makes no sync holds for the recording.
--
-- Instead: put its files on another device, run it at another time, or limit
-- its bandwidth (io.max of its control group).
--
-- Needs: sync.start_ns sync.bios bio.dev bio.pid
--
-- Not checked: it needs the devices and the processes of all bios, which the
-- routes dynamic-events and ring-buffer record.
--
-- Columns:
--   sync_id   id     The sync that waited longest.
--   ts_ns     time   Its start.
--   comm      text   Name of the thread.
--   path      text   Path of the file that it wrote, if known and only one.
--   cost_ns   ns     Time in which bios of the thread were ahead, summed.
--   note      prose  What was seen.
--   from_ns   time   Null: it is a sum.
--   until_ns  time   Null.
--   run       text   Name of the run, if the input holds several.
WITH
  -- The report bystanders.
  bystander AS (SELECT * FROM _syncline_bystander),
  kernel_thread(name) AS (VALUES (:kernel_threads)),
  -- A name that both have is not that of another program.
  own AS (
    SELECT DISTINCT bio.run AS run, bio.comm AS comm
    FROM syncline_bio AS bio
    JOIN (SELECT DISTINCT run, pid FROM syncline_sync) AS process
      ON process.run = bio.run
      AND process.pid = bio.pid
  )
SELECT
  bystander.sync_id AS sync_id,
  sync.ts_ns AS ts_ns,
  bystander.comm AS comm,
  bystander.path AS path,
  bystander.ahead_ns AS cost_ns,
  CAST(bystander.bios AS TEXT) || ' bios, ' || CAST(bystander.bytes AS TEXT)
  || ' bytes ahead of '
  || CAST(bystander.syncs AS TEXT)
  || ' of the '
  || CAST(bystander.of_syncs AS TEXT)
  || ' slowest syncs'
  || COALESCE('; process ' || bystander.process, '')
  || COALESCE('; control group ' || bystander.cgroup, '') AS note,
  CAST(NULL AS BIGINT) AS from_ns,
  CAST(NULL AS BIGINT) AS until_ns,
  bystander.run AS run
FROM bystander
JOIN syncline_sync AS sync
  ON sync.run = bystander.run
  AND sync.sync_id = bystander.sync_id
LEFT JOIN own ON own.run = bystander.run AND own.comm = bystander.comm
WHERE
  bystander.kind = 'background'
  AND bystander.comm IS NOT NULL
  AND bystander.share >= 0.05
  AND bystander.syncs >= 3
  AND own.comm IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM kernel_thread WHERE bystander.comm GLOB kernel_thread.name
  )
ORDER BY
  cost_ns DESC,
  bystander.run,
  bystander.comm,
  bystander.process NULLS LAST,
  bystander.cgroup NULLS LAST,
  bystander.writers NULLS LAST,
  bystander.path NULLS LAST;
