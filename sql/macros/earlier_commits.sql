-- Waits of syncs for a commit before the one that they need, with the sync for
-- which that commit was started.
--
-- Where the recorder does not say for which sync it was, it is the first one
-- that waits for this transaction, unless it is known that no sync started it.
--
-- Result: a row for each phase earlier commit whose commit was started for a
--   sync, with
--   run, sync_id, ts_ns, dur_ns  Of the phase.
--   transaction_id  Of the earlier commit. Null if it is not recorded.
--   starter_id      The sync for which it was started. It may be of the same
--                   thread.
--   is_inferred     1 if the commit may have begun before that sync waited, as
--                   by the timer, else 0.
--
-- Example: SELECT starter_id, SUM(dur_ns) FROM earlier_commits!() GROUP BY 1
CREATE PERFETTO MACRO earlier_commits()
RETURNS TableOrSubquery
AS
(
  WITH
    -- Runs whose recorder does not say which journal commits.
    _nameless AS (SELECT DISTINCT run FROM syncline_journal WHERE dev IS NULL),
    -- The times in which syncs waited for an earlier commit.
    _waiting AS (
      SELECT
        phase.run AS run,
        CASE WHEN _nameless.run IS NULL THEN sync.dev END AS dev,
        phase.ts_ns AS at_ns,
        phase.sync_id AS sync_id,
        phase.dur_ns AS dur_ns
      FROM syncline_phase AS phase
      JOIN syncline_sync AS sync
        ON sync.run = phase.run
        AND sync.sync_id = phase.sync_id
      LEFT JOIN _nameless ON _nameless.run = phase.run
      WHERE phase.phase = 'earlier commit' AND phase.dur_ns > 0
    ),
    -- Each with the begin of the commit that ran then: the last one that began.
    _assigned AS (
      SELECT run, dev, sync_id, at_ns AS ts_ns, dur_ns, fact_ns AS _begin_ns
      FROM latest_until!(
        _waiting,
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
    _first AS (
      SELECT
        wait.run AS run,
        wait.transaction_id AS transaction_id,
        sync.dev AS dev,
        sync.sync_id AS sync_id,
        ROW_NUMBER() OVER (
          PARTITION BY wait.run, sync.dev, wait.transaction_id
          ORDER BY wait.ts_ns, sync.sync_id
        ) AS _place
      FROM syncline_wait AS wait
      JOIN syncline_sync AS sync
        ON sync.run = wait.run
        AND sync.sync_id = wait.sync_id
      WHERE wait.transaction_id IS NOT NULL
    ),
    _started AS (
      SELECT
        of!(_assigned, (run, sync_id, ts_ns, dur_ns)),
        journal.transaction_id AS transaction_id,
        CASE
          WHEN journal.sync_id IS NOT NULL THEN journal.sync_id
          WHEN COALESCE(journal.started_by, 'sync') = 'sync' THEN _first.sync_id
        END AS starter_id,
        CASE WHEN journal.sync_id IS NULL THEN 1 ELSE 0 END AS is_inferred
      FROM _assigned
      JOIN syncline_sync AS sync
        ON sync.run = _assigned.run
        AND sync.sync_id = _assigned.sync_id
      JOIN syncline_journal AS journal
        ON journal.run = _assigned.run
        AND journal.dev IS NOT DISTINCT FROM _assigned.dev
        AND journal.ts_ns = _assigned._begin_ns
        AND journal.kind = 'commit'
      LEFT JOIN _first
        ON _first.run = sync.run
        AND _first.dev IS NOT DISTINCT FROM sync.dev
        AND _first.transaction_id = journal.transaction_id
        AND _first._place = 1
    )
  SELECT * FROM _started WHERE starter_id IS NOT NULL
);
