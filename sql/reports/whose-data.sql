-- Whose data: what was written while syncs waited for it, and for whom.
--
-- A sync writes the data of its file. Then it may wait for a commit, and the
-- thread of the journal writes the whole transaction: data and metadata of
-- every file that has changed since the last commit. So a sync may wait for
-- what others wrote. A fast commit of ext4 is written by the thread of the
-- sync, and counts as a commit that the sync waited for.
--
-- Kinds:
--   itself      Bios of the requests: data of their own files.
--   own file    Bios of commits that a sync waited for, with data of a file
--               whose sync waited for that commit.
--   other file  The same with data of a file that no such sync was for.
--   journal     Bios of these commits with what was written to the journal:
--               metadata, and in data=journal also data. It is not recorded
--               whose these are.
--   unknown     Bios of these commits whose flags are not recorded, or do not
--               say what they are: before 6.8, Linux marks only the last bio
--               that it writes to the journal.
--
-- Columns:
--   kind     text   As above.
--   path     text   Path of the other file. Null if it is not known.
--   writers  text   Name of the process that made the other file dirty, or
--                   several names. It is inferred from the file.
--   syncs    count  Number of syncs that wrote them or waited for them.
--   commits  count  Number of commits.
--   bios     count  Number of bios.
--   bytes    bytes  Their size.
--   share    share  Part of the bytes of all kinds.
--   run      text   Name of the run, if the input holds several.
WITH
  waiting AS MATERIALIZED (
    SELECT DISTINCT
      wait.run AS run,
      wait.commit_id AS commit_id,
      wait.sync_id AS sync_id,
      sync.dev AS dev,
      sync.ino AS ino
    FROM syncline_wait AS wait
    JOIN syncline_sync AS sync
      ON sync.run = wait.run
      AND sync.sync_id = wait.sync_id
    WHERE wait.commit_id IS NOT NULL
    UNION ALL
    SELECT journal.run, journal.commit_id, journal.sync_id, sync.dev, sync.ino
    FROM syncline_journal AS journal
    JOIN syncline_sync AS sync
      ON sync.run = journal.run
      AND sync.sync_id = journal.sync_id
    WHERE journal.kind = 'fast commit'
  ),
  own_file AS (SELECT DISTINCT run, commit_id, dev, ino FROM waiting),
  waited AS (SELECT DISTINCT run, commit_id FROM waiting),
  commit_bio AS (
    SELECT
      journal.run AS run,
      journal.commit_id AS commit_id,
      CASE
        -- Of metadata, or with a flush or FUA, as the block that ends a commit.
        WHEN bio.rwbs LIKE '%M%'
        OR bio.rwbs LIKE '%F%' THEN 'journal'
        WHEN own_file.ino IS NOT NULL THEN 'own file'
        WHEN bio.ino IS NOT NULL THEN 'other file'
        ELSE 'unknown'
      END AS kind,
      bio.path AS path,
      bio.writers AS writers,
      bio.bytes AS bytes
    FROM syncline_journal AS journal
    JOIN waited
      ON waited.run = journal.run
      AND waited.commit_id = journal.commit_id
    JOIN syncline_bio AS bio
      ON bio.run = journal.run
      AND bio.commit_id = journal.commit_id
    LEFT JOIN own_file
      ON own_file.run = journal.run
      AND own_file.commit_id = journal.commit_id
      AND own_file.ino = bio.ino
      -- The file system may be on another device than its bios.
      AND own_file.dev = COALESCE(journal.dev, own_file.dev)
    WHERE
      journal.dur_ns IS NOT NULL
      AND bio.sync_id IS NULL
      AND bio.direction = 'write'
  ),
  by_commit AS MATERIALIZED (
    SELECT
      run, commit_id, kind,
      CASE WHEN kind = 'other file' THEN path END AS path,
      CASE WHEN kind = 'other file' THEN writers END AS writers,
      COUNT(*) AS bios,
      SUM(bytes) AS bytes
    FROM commit_bio
    GROUP BY
      run, commit_id, kind,
      CASE WHEN kind = 'other file' THEN path END,
      CASE WHEN kind = 'other file' THEN writers END
  ),
  written AS (
    SELECT
      run, kind, path, writers,
      COUNT(*) AS commits,
      SUM(bios) AS bios,
      SUM(bytes) AS bytes
    FROM by_commit
    GROUP BY run, kind, path, writers
  ),
  served AS (
    SELECT
      by_commit.run AS run,
      by_commit.kind AS kind,
      by_commit.path AS path,
      by_commit.writers AS writers,
      COUNT(DISTINCT waiting.sync_id) AS syncs
    FROM by_commit
    JOIN waiting
      ON waiting.run = by_commit.run
      AND waiting.commit_id = by_commit.commit_id
    GROUP BY by_commit.run, by_commit.kind, by_commit.path, by_commit.writers
  ),
  found AS (
    SELECT
      'itself' AS kind,
      CAST(NULL AS TEXT) AS path,
      CAST(NULL AS TEXT) AS writers,
      COUNT(DISTINCT sync_id) AS syncs,
      CAST(NULL AS BIGINT) AS commits,
      COUNT(*) AS bios,
      SUM(bytes) AS bytes,
      run
    FROM syncline_bio
    WHERE sync_id IS NOT NULL AND direction = 'write'
    GROUP BY run
    UNION ALL
    SELECT
      written.kind, written.path, written.writers, served.syncs,
      written.commits, written.bios, written.bytes, written.run
    FROM written
    JOIN served
      ON served.run = written.run
      AND served.kind = written.kind
      AND served.path IS NOT DISTINCT FROM written.path
      AND served.writers IS NOT DISTINCT FROM written.writers
  ),
  shared AS (
    SELECT *, SUM(bytes) OVER (PARTITION BY run) AS all_bytes FROM found
  )
SELECT
  kind, path, writers, syncs, commits, bios, bytes,
  CAST(bytes AS DOUBLE) / NULLIF(all_bytes, 0) AS share,
  run
FROM shared
ORDER BY
  run,
  CASE kind
    WHEN 'itself' THEN 0
    WHEN 'own file' THEN 1
    WHEN 'other file' THEN 2
    WHEN 'journal' THEN 3
    ELSE 4
  END,
  bytes DESC NULLS LAST,
  path NULLS LAST,
  writers NULLS LAST;
