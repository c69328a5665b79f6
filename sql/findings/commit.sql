-- A commit of somebody else that a sync waited for.
--
-- Evidence is a time in which a sync waited for a commit while the journal was
-- committing another transaction (the phase earlier commit), which a sync of
-- another thread had started, or waited for if nothing says who started it. A
-- commit that the sync itself, its thread or a timer has started is left out. A
-- sync may have several.
--
-- Seen: {syncs} of {of_syncs} syncs waited for a commit that was not theirs:
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
WITH
  -- Runs whose recorder does not say which journal commits.
  nameless AS (SELECT DISTINCT run FROM syncline_journal WHERE dev IS NULL),
  -- The times in which syncs waited for an earlier commit.
  waiting AS (
    SELECT
      phase.run AS run,
      CASE WHEN nameless.run IS NULL THEN sync.dev END AS dev,
      phase.ts_ns AS at_ns,
      phase.sync_id AS sync_id,
      phase.dur_ns AS dur_ns
    FROM syncline_phase AS phase
    JOIN syncline_sync AS sync
      ON sync.run = phase.run
      AND sync.sync_id = phase.sync_id
    LEFT JOIN nameless ON nameless.run = phase.run
    WHERE phase.phase = 'earlier commit' AND phase.dur_ns > 0
  ),
  -- Each with the begin of the commit that ran then: the last one that began.
  assigned AS (
    SELECT run, dev, sync_id, at_ns AS ts_ns, dur_ns, fact_ns AS begin_ns
    FROM latest_until!(
      waiting,
      (
        SELECT run, dev, ts_ns AS at_ns, ts_ns AS value_ns
        FROM syncline_journal
        WHERE kind = 'commit' AND dur_ns IS NOT NULL
      ),
      (sync_id, dur_ns),
      (run, dev)
    )
  ),
  -- The sync that waited first for each transaction.
  first AS (
    SELECT
      wait.run AS run,
      wait.transaction_id AS transaction_id,
      sync.dev AS dev,
      sync.sync_id AS sync_id,
      ROW_NUMBER() OVER (
        PARTITION BY wait.run, sync.dev, wait.transaction_id
        ORDER BY wait.ts_ns, sync.sync_id
      ) AS place
    FROM syncline_wait AS wait
    JOIN syncline_sync AS sync
      ON sync.run = wait.run
      AND sync.sync_id = wait.sync_id
    WHERE wait.transaction_id IS NOT NULL
  )
SELECT
  sync.sync_id AS sync_id,
  sync.ts_ns AS ts_ns,
  sync.comm AS comm,
  sync.path AS path,
  assigned.dur_ns AS cost_ns,
  'transaction ' || CAST(journal.transaction_id AS TEXT) || ' of sync '
  || CAST(other.sync_id AS TEXT)
  || ' ('
  || COALESCE(other.comm, 'unknown thread')
  || ', '
  || COALESCE(other.path, 'unknown file')
  || ')' AS note,
  CAST(NULL AS BIGINT) AS from_ns,
  CAST(NULL AS BIGINT) AS until_ns,
  sync.run AS run
FROM assigned
JOIN syncline_sync AS sync
  ON sync.run = assigned.run
  AND sync.sync_id = assigned.sync_id
JOIN syncline_journal AS journal
  ON journal.run = assigned.run
  AND journal.dev IS NOT DISTINCT FROM assigned.dev
  AND journal.ts_ns = assigned.begin_ns
  AND journal.kind = 'commit'
LEFT JOIN first
  ON first.run = sync.run
  AND first.dev IS NOT DISTINCT FROM sync.dev
  AND first.transaction_id = journal.transaction_id
  AND first.place = 1
JOIN syncline_sync AS other
  ON other.run = sync.run
  AND other.sync_id
  = CASE
    WHEN journal.sync_id IS NOT NULL THEN journal.sync_id
    WHEN COALESCE(journal.started_by, 'sync') = 'sync' THEN first.sync_id
  END
LEFT JOIN _syncline_of_kernel AS of_kernel
  ON of_kernel.run = sync.run
  AND of_kernel.sync_id = sync.sync_id
WHERE
  of_kernel.sync_id IS NULL
  AND other.sync_id <> sync.sync_id
  AND (other.tid <> sync.tid OR other.pid <> sync.pid)
ORDER BY cost_ns DESC, sync.run, sync.sync_id, assigned.ts_ns;
