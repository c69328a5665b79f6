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
SELECT
  sync_id,
  ts_ns,
  comm,
  path,
  cost_ns,
  note || COALESCE('; process ' || process, '')
  || COALESCE('; control group ' || cgroup, '') AS note,
  CAST(NULL AS BIGINT) AS from_ns,
  CAST(NULL AS BIGINT) AS until_ns,
  run
FROM _syncline_delay
WHERE
  who = 'other'
ORDER BY
  cost_ns DESC,
  run,
  comm,
  process NULLS LAST,
  cgroup NULLS LAST,
  writers NULLS LAST,
  path NULLS LAST;
