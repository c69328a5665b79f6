-- Bios that waited in a queue while nothing recorded was at the device.
--
-- Evidence is the row unrecorded of the report neighbours, if it has at least a
-- quarter of the time of the syncs, and at least 3 of them. Its sync is the one
-- that waited longest in this way.
--
-- Seen: bios that syncs waited for were queued for at least a millisecond each
-- while the recording has nothing at the device; the longest wait is of
-- {where}.
--
-- Cost: the time in which syncs waited in this way, summed over them; syncs at
-- the same time count each.
--
-- Inferred: that something held the bios back. The recording lacks what.
--
-- Instead: look for what the recording lacks. io.max in the control group of
-- the program, and in those above it, is a limit; iostat -x shows reads and
-- other partitions of the device; lsblk shows a device mapper, which may delay
-- bios; on a virtual machine, the host may be the reason.
--
-- Needs: sync.start_ns sync.bios bio.dev bio.pid bio.queue_ns
--
-- Not checked: it needs the issue of all bios, which the routes dynamic-events
-- and ring-buffer record.
--
-- Columns:
--   sync_id   id     The sync that waited longest in this way.
--   ts_ns     time   Its start.
--   comm      text   Name of its thread.
--   path      text   Path of its file.
--   cost_ns   ns     What it cost, as the report neighbours has it.
--   note      prose  The part of the time of the syncs, and the control group
--                    of this one.
--   from_ns   time   Null: it is a sum.
--   until_ns  time   Null.
--   run       text   Name of the run, if the input holds several.
SELECT
  neighbour.sync_id AS sync_id,
  sync.ts_ns AS ts_ns,
  sync.comm AS comm,
  sync.path AS path,
  neighbour.cost_ns AS cost_ns,
  'the sum over ' || CAST(neighbour.syncs AS TEXT) || ' of '
  || CAST(neighbour.of_syncs AS TEXT)
  || ' syncs, of which this one waited longest; '
  || CAST(CAST(ROUND(100 * neighbour.share) AS BIGINT) AS TEXT)
  || ' % of their time'
  || COALESCE('; control group ' || NULLIF(sync.cgroup, '/'), '') AS note,
  CAST(NULL AS BIGINT) AS from_ns,
  CAST(NULL AS BIGINT) AS until_ns,
  neighbour.run AS run
FROM _syncline_neighbour AS neighbour
JOIN syncline_sync AS sync
  ON sync.run = neighbour.run
  AND sync.sync_id = neighbour.sync_id
WHERE
  neighbour.kind = 'unrecorded'
  AND neighbour.share >= :cause_share
  AND neighbour.syncs >= :cause_syncs
ORDER BY neighbour.cost_ns DESC, neighbour.run;
