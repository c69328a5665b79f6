-- Journal: the commits of each journal, and the syncs that shared them.
--
-- A recording of `dynamic-events` says what started a commit. In another one a
-- commit is started by a sync if a sync waited for it before it began, and the
-- rest is unknown. A sync that waits later shares a commit and did not start
-- it. A fast commit that was not eligible, or failed, was replaced by a full
-- commit, and its length includes that one.
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
--   syncs        count  Number of syncs that waited for them.
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
--   data_bios    count  Number of bios with data of files that the thread wrote
--                       in these commits. Null if no bio of them has flags, as
--                       for a log force and for own commits, and if none is
--                       marked as metadata, because Linux before 6.8 does not
--                       mark what it writes to the journal.
--   data_bytes   bytes  Their size.
--   log_bios     count  Number of bios with what it wrote to the journal.
--   log_bytes    bytes  Their size.
--   run          text   Name of the run, if the input holds several.
WITH
  waiting AS MATERIALIZED (
    SELECT
      wait.run AS run,
      wait.sync_id AS sync_id,
      wait.wait AS kind,
      wait.transaction_id AS transaction_id,
      wait.ts_ns AS begin_ns,
      wait.ts_ns + wait.dur_ns AS end_ns,
      sync.dev AS dev
    FROM syncline_wait AS wait
    JOIN syncline_sync AS sync
      ON sync.run = wait.run
      AND sync.sync_id = wait.sync_id
    WHERE
      wait.wait <> 'flush'
      -- Where waits are not recorded, some are inferred, others missing.
      AND wait.confidence IS DISTINCT FROM 'inferred'
  ),
  -- The syncs that waited for each commit of a journal's thread, and the device
  -- of their files.
  waited AS (
    SELECT
      wait.run AS run,
      wait.commit_id AS commit_id,
      COUNT(DISTINCT wait.sync_id) AS syncs,
      MIN(sync.dev) AS dev
    FROM syncline_wait AS wait
    JOIN syncline_sync AS sync
      ON sync.run = wait.run
      AND sync.sync_id = wait.sync_id
    WHERE
      wait.commit_id IS NOT NULL
      AND wait.confidence IS DISTINCT FROM 'inferred'
    GROUP BY wait.run, wait.commit_id
  ),
  -- What was submitted in each commit whose end is known.
  wrote AS (
    SELECT
      journal.run AS run,
      journal.commit_id AS commit_id,
      COUNT(*) AS bios,
      SUM(bio.bytes) AS bytes,
      SUM(CASE WHEN bio.rwbs LIKE '%M%' THEN 1 ELSE 0 END) AS log_bios,
      SUM(CASE WHEN bio.rwbs LIKE '%M%' THEN bio.bytes ELSE 0 END) AS log_bytes
    FROM syncline_journal AS journal
    JOIN syncline_bio AS bio
      ON bio.run = journal.run
      AND bio.commit_id = journal.commit_id
    WHERE
      journal.dur_ns IS NOT NULL
      AND bio.rwbs IS NOT NULL
      AND bio.direction = 'write'
    GROUP BY journal.run, journal.commit_id
    -- A kernel that does not mark what it writes to the journal marks none.
    HAVING SUM(CASE WHEN bio.rwbs LIKE '%M%' THEN 1 ELSE 0 END) > 0
  ),
  -- The runs whose syncs have known waits for the journal.
  seen AS (
    SELECT DISTINCT run, 0 AS none
    FROM syncline_sync
    WHERE journal_ns IS NOT NULL
  ),
  by_journal AS (
    SELECT
      'commit' AS kind,
      journal.comm AS comm,
      COALESCE(journal.dev, waited.dev) AS dev,
      COALESCE(
        journal.started_by,
        CASE WHEN seen.run IS NOT NULL THEN 'unknown' END
      ) AS started_by,
      CAST(NULL AS TEXT) AS status,
      CAST(NULL AS TEXT) AS reason,
      COALESCE(waited.syncs, seen.none) AS syncs,
      journal.ts_ns AS at_ns,
      journal.dur_ns AS dur_ns,
      journal.locking_ns AS locking_ns,
      journal.flushing_ns AS flushing_ns,
      journal.logging_ns AS logging_ns,
      wrote.bios - wrote.log_bios AS data_bios,
      wrote.bytes - wrote.log_bytes AS data_bytes,
      wrote.log_bios AS log_bios,
      wrote.log_bytes AS log_bytes,
      journal.run AS run
    FROM syncline_journal AS journal
    LEFT JOIN waited
      ON waited.run = journal.run
      AND waited.commit_id = journal.commit_id
    LEFT JOIN wrote
      ON wrote.run = journal.run
      AND wrote.commit_id = journal.commit_id
    LEFT JOIN seen ON seen.run = journal.run
    WHERE
      journal.kind = 'commit'
      -- Of the others it is not known when they began.
      AND journal.incomplete IS DISTINCT FROM 'start'
  ),
  by_fast AS (
    SELECT
      'fast commit' AS kind,
      NULL AS comm,
      journal.dev AS dev,
      journal.started_by AS started_by,
      journal.status AS status,
      journal.reason AS reason,
      CASE WHEN journal.sync_id IS NULL THEN 0 ELSE 1 END AS syncs,
      journal.ts_ns AS at_ns,
      journal.dur_ns AS dur_ns,
      NULL AS locking_ns,
      NULL AS flushing_ns,
      NULL AS logging_ns,
      wrote.bios - wrote.log_bios AS data_bios,
      wrote.bytes - wrote.log_bytes AS data_bytes,
      wrote.log_bios AS log_bios,
      wrote.log_bytes AS log_bytes,
      journal.run AS run
    FROM syncline_journal AS journal
    LEFT JOIN wrote
      ON wrote.run = journal.run
      AND wrote.commit_id = journal.commit_id
    WHERE
      journal.kind = 'fast commit'
      AND journal.incomplete IS DISTINCT FROM 'start'
  ),
  by_sync AS (
    SELECT
      CASE kind WHEN 'commit' THEN 'own commit' ELSE kind END AS kind,
      NULL AS comm,
      dev,
      'sync' AS started_by,
      NULL AS status,
      NULL AS reason,
      1 AS syncs,
      begin_ns AS at_ns,
      end_ns - begin_ns AS dur_ns,
      NULL AS locking_ns,
      NULL AS flushing_ns,
      NULL AS logging_ns,
      NULL AS data_bios,
      NULL AS data_bytes,
      NULL AS log_bios,
      NULL AS log_bytes,
      run
    FROM waiting
    WHERE
      kind = 'commit'
      OR (kind = 'fast commit' AND run NOT IN (SELECT run FROM by_fast))
  ),
  by_wait AS (
    SELECT
      'log force' AS kind,
      NULL AS comm,
      dev,
      'sync' AS started_by,
      NULL AS status,
      NULL AS reason,
      COUNT(DISTINCT sync_id) AS syncs,
      MIN(begin_ns) AS at_ns,
      MAX(end_ns) - MIN(begin_ns) AS dur_ns,
      NULL AS locking_ns,
      NULL AS flushing_ns,
      NULL AS logging_ns,
      NULL AS data_bios,
      NULL AS data_bytes,
      NULL AS log_bios,
      NULL AS log_bytes,
      run
    FROM waiting
    WHERE
      kind = 'commit wait'
      AND transaction_id IS NOT NULL
      AND NOT EXISTS (
        SELECT 1
        FROM syncline_journal AS journal
        WHERE
          journal.run = waiting.run
          AND journal.kind = 'commit'
          AND (journal.dev IS NULL OR journal.dev = waiting.dev)
      )
    GROUP BY dev, transaction_id, run
  ),
  made AS (
    SELECT * FROM by_journal
    UNION ALL
    SELECT * FROM by_fast
    UNION ALL
    SELECT * FROM by_sync
    UNION ALL
    SELECT * FROM by_wait
  ),
  ranked AS (
    SELECT
      *,
      ROW_NUMBER() OVER (
        PARTITION BY run, kind, comm, dev, started_by, status, reason
        ORDER BY dur_ns DESC NULLS LAST, at_ns
      ) AS place
    FROM made
  )
SELECT
  kind, comm, dev, started_by, status, reason,
  COUNT(*) AS commits,
  SUM(syncs) AS syncs,
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
