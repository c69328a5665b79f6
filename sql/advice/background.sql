-- A queue that background writes fill.
--
-- Evidence is a bystander of the report bystanders that took at least 5 % of
-- the time of the slowest syncs, and was ahead of at least 3 of them: a thread
-- of a process that syncs itself, or a thread of the kernel that writes page
-- cache back. One row for each; its sync is the one that waited longest.
--
-- Seen: {where} had bios ahead of the slowest syncs.
--
-- Cost: the time in which such bios were ahead, summed over the slowest syncs.
-- It is the most that they may have cost; syncs at the same time count each.
--
-- Inferred: whose data a thread of the kernel writes follows from who made
-- pages of the file dirty. Recordings without writers do not say it.
--
-- Instead: write back earlier and in smaller parts (sync_file_range, or lower
-- limits of dirty page cache), and limit the rate of background writes.
--
-- Needs: sync.start_ns sync.bios bio.dev
--
-- Not checked: it needs the devices of all bios, which the routes
-- dynamic-events and bpftrace record.
--
-- Columns:
--   sync_id   id     The sync that waited longest.
--   ts_ns     time   Its start.
--   comm      text   Name of the thread that wrote.
--   path      text   Path of the file that it wrote, if known and only one.
--   cost_ns   ns     Time in which bios of the thread were ahead, summed.
--   note      prose  What was seen.
--   from_ns   time   Null: it is a sum.
--   until_ns  time   Null.
--   run       text   Name of the run, if the input holds several.
WITH
  -- The report bystanders.
  bystander AS (SELECT * FROM _syncline_bystander),
  own AS (
    SELECT DISTINCT bio.run AS run, bio.comm AS comm
    FROM syncline_bio AS bio
    JOIN (SELECT DISTINCT run, pid FROM syncline_sync) AS process
      ON process.run = bio.run
      AND process.pid = bio.pid
    WHERE
      bio.sync_id IS NULL
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
  || ' slowest syncs; '
  || CASE
    WHEN own.comm IS NULL THEN 'a thread of the kernel'
    || COALESCE(', for ' || bystander.writers, '')
    ELSE 'of a process that syncs'
  END AS note,
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
  AND bystander.share >= 0.05
  AND bystander.syncs >= 3
  AND (own.comm IS NOT NULL OR bystander.comm GLOB 'kworker/*')
ORDER BY
  cost_ns DESC,
  bystander.run,
  bystander.comm,
  bystander.writers NULLS LAST,
  bystander.path NULLS LAST;
