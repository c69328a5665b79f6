-- Appends that each wait for a commit.
--
-- Evidence is an fdatasync that waited for a commit, if its thread makes at
-- least 8 of the same file, and half of them waited for one. On ext4 and xfs,
-- fdatasync commits only what is needed to read the data again: a new size
-- of the file, or blocks that were not in use before. Of records that are
-- smaller than a block, only those that begin one need that, if the size is set
-- in advance.
--
-- Seen: {syncs} of {of_syncs} {are} of a file that had grown, or had
-- blocks written for the first time: {where}.
--
-- Cost: the time in which all syncs of the process waited for such commits. It
-- is the most that can be saved.
--
-- Inferred: that the file grew, because fdatasync waited for a commit of it.
--
-- Instead: write the blocks once before they are needed, with zeros, and sync
-- them: overwrites then need no commit (wal_init_zero of PostgreSQL).
-- fallocate is not enough, because the first write of such a block is
-- committed too. Or sync several records at once.
--
-- Needs: sync.path phase:commit wait
--
-- Not checked: it needs the paths and the waits for commits of the journal,
-- which the route dynamic-events records on ext4 and xfs.
--
-- Columns:
--   sync_id   id     The sync.
--   ts_ns     time   Its start.
--   comm      text   Name of its thread.
--   path      text   Path of its file.
--   cost_ns   ns     How long it waited for the commit.
--   note      prose  How many of the same file there are.
--   from_ns   time   Start of the wait.
--   until_ns  time   Its end.
--   run       text   Name of the run, if the input holds several.
WITH
  -- A sync waits for one commit at a time, so from the first of these phases to
  -- the last one it waits for its commit.
  commit_wait AS (
    SELECT run, sync_id, MIN(ts_ns) AS from_ns, MAX(ts_ns + dur_ns) AS until_ns
    FROM syncline_phase
    WHERE
      phase IN (
        'earlier commit', 'commit start', 'commit locking', 'commit flushing',
        'commit logging', 'commit wait'
      )
    GROUP BY run, sync_id
  ),
  request AS (
    SELECT
      sync.run AS run,
      sync.sync_id AS sync_id,
      sync.ts_ns AS ts_ns,
      sync.comm AS comm,
      sync.path AS path,
      commit_wait.from_ns AS from_ns,
      commit_wait.until_ns AS until_ns,
      COUNT(*) OVER of_file AS syncs,
      COUNT(commit_wait.sync_id) OVER of_file AS commits
    FROM syncline_sync AS sync
    LEFT JOIN commit_wait
      ON commit_wait.run = sync.run
      AND commit_wait.sync_id = sync.sync_id
    WHERE
      sync.op = 'fdatasync'
      AND sync.path IS NOT NULL
      AND sync.dur_ns IS NOT NULL
      AND sync.fs IN ('ext4', 'xfs')
    WINDOW of_file AS (PARTITION BY sync.run, sync.pid, sync.tid, sync.path)
  )
SELECT
  sync_id, ts_ns, comm, path,
  until_ns - from_ns AS cost_ns,
  'one of ' || CAST(commits AS TEXT) || ' that waited for a commit, of '
  || CAST(syncs AS TEXT)
  || ' of the file' AS note,
  from_ns, until_ns, run
FROM request
WHERE from_ns IS NOT NULL AND syncs >= 8 AND commits * 2 >= syncs
ORDER BY cost_ns DESC, run, sync_id;
