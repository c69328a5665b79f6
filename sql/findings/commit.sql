-- A commit of somebody else that a sync waited for.
--
-- Evidence is a time in which a sync waited for a commit while the journal was
-- committing another transaction (the phase earlier commit), which a sync of
-- another thread had started, or waited for if nothing says who started it. A
-- commit that the sync itself, its thread or a timer has started is left out. A
-- sync may have several.
--
-- Seen: {syncs} of {of_syncs} waited for a commit that was not theirs:
-- {where}.
--
-- Cost: the time in which threads waited for such commits, summed over the
-- threads, because the thread whose commit it is waits meanwhile, too.
--
-- Instead: sync files together, so that they share a commit; call fdatasync for
-- overwrites in place, which need none; keep files that must not wait on a file
-- system of their own.
--
-- Needs: phase:earlier commit journal.transaction_id
--
-- Not checked: it needs the commits of the journal's thread, which the route
-- dynamic-events records on ext4.
--
-- Columns:
--   sync_id   id     The sync.
--   ts_ns     time   Its start.
--   comm      text   Name of its thread.
--   path      text   Path of its file.
--   cost_ns   ns     Duration of the phase.
--   note      prose  Whose commit it was: of the sync that started it, or that
--                    waited for it first.
--   from_ns   time   Null: it is a sum.
--   until_ns  time   Null.
--   run       text   Name of the run, if the input holds several.
SELECT
  sync.sync_id AS sync_id,
  sync.ts_ns AS ts_ns,
  sync.comm AS comm,
  sync.path AS path,
  earlier.dur_ns AS cost_ns,
  'transaction ' || CAST(earlier.transaction_id AS TEXT) || ' of sync '
  || CAST(other.sync_id AS TEXT)
  || ' ('
  || COALESCE(other.comm, 'unknown thread')
  || ', '
  || COALESCE(other.path, 'unknown file')
  || ')' AS note,
  CAST(NULL AS BIGINT) AS from_ns,
  CAST(NULL AS BIGINT) AS until_ns,
  sync.run AS run
FROM earlier_commits!() AS earlier
JOIN syncline_sync AS sync
  ON sync.run = earlier.run
  AND sync.sync_id = earlier.sync_id
JOIN syncline_sync AS other
  ON other.run = earlier.run
  AND other.sync_id = earlier.starter_id
LEFT JOIN _syncline_of_kernel AS of_kernel
  ON of_kernel.run = sync.run
  AND of_kernel.sync_id = sync.sync_id
WHERE
  of_kernel.sync_id IS NULL
  AND other.sync_id <> sync.sync_id
  AND (other.tid <> sync.tid OR other.pid <> sync.pid)
ORDER BY cost_ns DESC, sync.run, sync.sync_id, earlier.ts_ns;
