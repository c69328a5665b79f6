-- Journal: the commits of each journal, and the syncs that shared them.
--
-- A recording of `dynamic-events` says what started a commit. In other
-- recordings, a sync started a commit if it waited for it before the commit
-- began, and otherwise the reason is unknown. A sync that waits later shares
-- the commit, but did not start it. A fast commit that was not eligible, or
-- failed, was replaced by a full commit, and its length includes that one.
--
-- Narrow: kind comm commits started_by syncs shared total_ns max_ns logging_ns
--  log_bytes dev
--
-- Columns:
--   kind         text   commit: by the thread of the journal. own commit, fast
--                       commit: by the thread of a sync. log force: its waits
--                       are recorded, and not the commit itself.
--   comm         text   Name of the thread of the journal. Null for the others.
--   dev          text   Device of the file system.
--   started_by   text   sync; timer: the transaction was old enough; space: a
--                       thread needed room in the journal; other: another
--                       thread; unknown. Null if waits are not recorded, as all
--                       figures of syncs.
--   status       text   How fast commits ended: ok, skipped (another commit had
--                       made the same durable), ineligible or failed. Null if
--                       that is not recorded.
--   reason       text   Why they were not eligible, if that is recorded.
--   commits      count  Number of commits. A fast commit and a commit by the
--                       thread of a sync count once for each.
--   syncs        count  Number of sync calls that waited for them. One that
--                       waited for two of them counts twice.
--   shared       count  Number of commits that more than one sync waited for.
--   max_syncs    count  The most syncs that waited for one.
--   total_ns     ns     Sum of their lengths. For a log force, of the time from
--                       the begin of the first wait to the end of the last one.
--   max_ns       ns     The longest one.
--   at_ns        time   Its start.
--   locking_ns   ns     Average time in which a commit of jbd2 waits for open
--                       handles.
--   flushing_ns  ns     Average time in which it writes data of files.
--   logging_ns   ns     Average time in which it writes to the journal.
--   data_bios    count  Number of bios with data of files that the thread
--                       wrote in these commits. Null if no bio of them has
--                       flags, as for a log force and for own commits, and if
--                       none is marked as metadata, because not each kernel
--                       marks what it writes to the journal.
--   data_bytes   bytes  Their size.
--   log_bios     count  Number of bios with what it wrote to the journal.
--   log_bytes    bytes  Their size.
--   run          text   Name of the run, if the input holds several.
WITH
  -- Recorded waits of syncs for the journal. Inferred ones do not count: a
  -- recording that has inferred waits lacks others.
  waiting AS (
    SELECT
      wait.run AS run,
      sync.call_sync_id AS call_sync_id,
      wait.wait AS wait,
      wait.commit_id AS commit_id,
      wait.transaction_id AS transaction_id,
      wait.ts_ns AS ts_ns,
      wait.ts_ns + wait.dur_ns AS end_ns,
      sync.dev AS dev
    FROM syncline_wait AS wait
    JOIN syncline_sync AS sync
      ON sync.run = wait.run
      AND sync.sync_id = wait.sync_id
    WHERE
      wait.wait NOT IN ('flush', 'metadata wait')
      AND wait.confidence IS DISTINCT FROM 'inferred'
  ),
  -- The runs that record waits. `no_syncs` is the number of syncs of a commit
  -- without a wait: known to be 0 in these runs, and null in the others.
  with_waits AS (
    SELECT DISTINCT run, 0 AS no_syncs
    FROM syncline_sync
    WHERE journal_ns IS NOT NULL
  ),
  -- The syncs that waited for each commit of a journal's thread, and the device
  -- of their files.
  waited AS (
    SELECT
      run, commit_id,
      COUNT(DISTINCT call_sync_id) AS syncs,
      MIN(dev) AS dev
    FROM waiting
    GROUP BY run, commit_id
  ),
  -- The commits of syncline_journal, without those whose begin is lost.
  recorded AS (
    SELECT * FROM syncline_journal WHERE incomplete IS DISTINCT FROM 'start'
  ),
  -- All commits: those recorded, and those that only the waits of syncs show.
  made AS (
    SELECT
      journal.run AS run,
      journal.kind AS kind,
      journal.commit_id AS commit_id,
      COALESCE(journal.dev, waited.dev) AS dev,
      COALESCE(
        journal.started_by,
        CASE WHEN with_waits.run IS NOT NULL THEN 'unknown' END
      ) AS started_by,
      CASE journal.kind
        WHEN 'commit' THEN COALESCE(waited.syncs, with_waits.no_syncs)
        -- The sync whose thread made it, if that is known.
        ELSE CASE WHEN journal.sync_id IS NOT NULL THEN 1 END
      END AS syncs,
      journal.ts_ns AS at_ns,
      journal.dur_ns AS dur_ns
    FROM recorded AS journal
    LEFT JOIN waited
      ON waited.run = journal.run
      AND waited.commit_id = journal.commit_id
    LEFT JOIN with_waits ON with_waits.run = journal.run
    WHERE journal.kind IN ('commit', 'fast commit')
    UNION ALL
    -- Commits that a sync makes itself: its wait of this kind is the commit. A
    -- fast commit is taken from there only if syncline_journal has none.
    SELECT
      run,
      CASE wait WHEN 'commit' THEN 'own commit' ELSE wait END,
      NULL, dev, 'sync', 1, ts_ns,
      end_ns - ts_ns
    FROM waiting
    WHERE
      wait = 'commit'
      OR (wait = 'fast commit'
      AND run NOT IN (SELECT run FROM recorded WHERE kind = 'fast commit'))
    UNION ALL
    -- Log forces: all waits for one transaction count as one, where
    -- syncline_journal has no commit of this journal.
    SELECT
      run, 'log force', NULL, dev, 'sync',
      COUNT(DISTINCT call_sync_id),
      MIN(ts_ns),
      MAX(end_ns) - MIN(ts_ns)
    FROM waiting
    WHERE
      wait = 'commit wait'
      AND transaction_id IS NOT NULL
      AND NOT EXISTS (
        SELECT 1
        FROM syncline_journal AS journal
        LEFT JOIN waited
          ON waited.run = journal.run
          AND waited.commit_id = journal.commit_id
        WHERE
          journal.run = waiting.run
          AND journal.kind = 'commit'
          AND COALESCE(journal.dev, waited.dev) = waiting.dev
      )
    GROUP BY run, dev, transaction_id
  ),
  -- How much data and log each commit whose length is known wrote. What
  -- writes_journal! does not know is data, because the kernel marks its log.
  commit_amount AS (
    SELECT
      bio.run AS run,
      bio.commit_id AS commit_id,
      SUM(1 - is_log) AS data_bios,
      SUM((1 - is_log) * bytes) AS data_bytes,
      SUM(is_log) AS log_bios,
      SUM(is_log * bytes) AS log_bytes
    FROM (
      SELECT *, COALESCE(writes_journal!(bio), 0) AS is_log
      FROM syncline_bio AS bio
    ) AS bio
    JOIN syncline_journal AS journal
      ON journal.run = bio.run
      AND journal.commit_id = bio.commit_id
      AND journal.dur_ns IS NOT NULL
    WHERE bio.rwbs IS NOT NULL AND bio.direction = 'write'
    GROUP BY bio.run, bio.commit_id
    -- A kernel marks all that it writes to the journal as metadata, or nothing.
    HAVING COUNT(CASE WHEN rwbs LIKE '%M%' THEN 1 END) > 0
  ),
  -- All commits, with what syncline_journal says of them and what they wrote.
  described AS (
    SELECT
      made.*,
      CASE made.kind WHEN 'commit' THEN journal.comm END AS comm,
      of!(journal, (status, reason, locking_ns, flushing_ns, logging_ns)),
      of!(commit_amount, (data_bios, data_bytes, log_bios, log_bytes))
    FROM made
    LEFT JOIN syncline_journal AS journal
      ON journal.run = made.run
      AND journal.commit_id = made.commit_id
    LEFT JOIN commit_amount
      ON commit_amount.run = made.run
      AND commit_amount.commit_id = made.commit_id
  ),
  -- The longest one of each row of the result has place 1.
  ranked AS (
    SELECT
      *,
      ROW_NUMBER() OVER (
        PARTITION BY run, kind, comm, dev, started_by, status, reason
        ORDER BY dur_ns DESC NULLS LAST, at_ns
      ) AS place
    FROM described
  )
SELECT
  kind, comm, dev, started_by, status, reason,
  COUNT(*) AS commits,
  SUM(syncs) AS syncs,
  -- Null if the number of syncs is not known of any commit.
  SUM(CASE WHEN syncs > 1 THEN 1 WHEN syncs >= 0 THEN 0 END) AS shared,
  MAX(syncs) AS max_syncs,
  SUM(dur_ns) AS total_ns,
  MAX(dur_ns) AS max_ns,
  MAX(CASE WHEN place = 1 THEN at_ns END) AS at_ns,
  CAST(ROUND(AVG(locking_ns)) AS BIGINT) AS locking_ns,
  CAST(ROUND(AVG(flushing_ns)) AS BIGINT) AS flushing_ns,
  CAST(ROUND(AVG(logging_ns)) AS BIGINT) AS logging_ns,
  SUM(data_bios) AS data_bios,
  SUM(data_bytes) AS data_bytes,
  SUM(log_bios) AS log_bios,
  SUM(log_bytes) AS log_bytes,
  run
FROM ranked
GROUP BY run, kind, comm, dev, started_by, status, reason
ORDER BY
  run,
  COUNT(*) DESC,
  kind,
  comm NULLS LAST,
  dev NULLS LAST,
  started_by DESC NULLS LAST,
  status NULLS LAST,
  reason NULLS LAST;
