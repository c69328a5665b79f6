-- A queue that background writes fill.
--
-- Evidence is a bystander of the report bystanders that took at least 5 % of
-- the time of the slowest syncs, and was ahead of at least 3 of them: a thread
-- of a process that syncs itself, or a thread of the kernel that writes page
-- cache back, unless it is known to write for a program that does not sync,
-- which is a neighbour. One row for each; its sync is the one that waited
-- longest.
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
SELECT
  sync_id, ts_ns, comm, path, cost_ns, note
  || CASE who
    WHEN 'kernel' THEN '; a thread of the kernel'
    || COALESCE(', for ' || writers, '')
    ELSE '; of a process that syncs'
  END AS note,
  CAST(NULL AS BIGINT) AS from_ns,
  CAST(NULL AS BIGINT) AS until_ns,
  run
FROM _syncline_delay
WHERE
  who = 'own'
  OR (who = 'kernel'
  AND (writers IS NULL
  OR writers IN (SELECT COALESCE(process, comm) FROM syncline_sync)))
ORDER BY cost_ns DESC, run, comm, writers NULLS LAST, path NULLS LAST;
