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
-- Instead: look for what the recording lacks. If bios of other control groups
-- were queued for much less, a limit is likely: io.max or io.latency of this
-- group, or of one above it. Else iostat -x shows reads and other partitions of
-- the device; lsblk shows a device mapper, which may delay bios; on a virtual
-- machine, the host may be the reason.
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
--   note      prose  The part of the time of the syncs; the control group of
--                    this one; and how long its bios were queued, next to those
--                    of other groups at the same device.
--   from_ns   time   Null: it is a sum.
--   until_ns  time   Null.
--   run       text   Name of the run, if the input holds several.
WITH
  -- How long the writes of each control group were queued at each device.
  queued AS (
    SELECT
      run, dev, cgroup,
      COUNT(*) AS bios,
      SUM(queue_ns) AS queue_ns,
      ROW_NUMBER() OVER (
        PARTITION BY run, cgroup
        ORDER BY SUM(queue_ns) DESC, dev
      ) AS number
    FROM syncline_bio
    WHERE
      queue_ns IS NOT NULL
      AND direction = 'write'
      AND dev IS NOT NULL
      AND cgroup IS NOT NULL
    GROUP BY run, dev, cgroup
  ),
  -- The same for each group at the device at which it waited longest, next to
  -- all others there.
  next_to_others AS (
    SELECT
      of!(queued, (run, cgroup)),
      MAX(queued.queue_ns / queued.bios) AS mean_ns,
      SUM(other.queue_ns) / SUM(other.bios) AS others_mean_ns
    FROM queued
    JOIN queued AS other
      ON other.run = queued.run
      AND other.dev = queued.dev
      AND other.cgroup <> queued.cgroup
    WHERE queued.number = 1
    GROUP BY queued.run, queued.cgroup
  )
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
  || COALESCE('; control group ' || NULLIF(sync.cgroup, '/'), '')
  || COALESCE(
    ', whose bios were queued for '
    || CAST(CAST(ROUND(mean_ns / 1000.0) AS BIGINT) AS TEXT)
    || ' us on average, and those of other groups there for '
    || CAST(CAST(ROUND(others_mean_ns / 1000.0) AS BIGINT) AS TEXT)
    || ' us',
    ''
  ) AS note,
  CAST(NULL AS BIGINT) AS from_ns,
  CAST(NULL AS BIGINT) AS until_ns,
  neighbour.run AS run
FROM _syncline_neighbour AS neighbour
JOIN syncline_sync AS sync
  ON sync.run = neighbour.run
  AND sync.sync_id = neighbour.sync_id
LEFT JOIN next_to_others
  ON next_to_others.run = sync.run
  AND next_to_others.cgroup = NULLIF(sync.cgroup, '/')
WHERE
  neighbour.kind = 'unrecorded'
  AND neighbour.share >= :cause_share
  AND neighbour.syncs >= :cause_syncs
ORDER BY neighbour.cost_ns DESC, neighbour.run;
