-- Whose data: what was written while syncs waited for it, and for whom.
--
-- A sync writes the data of its file. Then it may wait for a commit, in which
-- the thread of the journal writes the whole transaction: data and metadata of
-- every file that has changed since the last commit. So a sync may wait for
-- data that others wrote. A fast commit of ext4 is written by the thread of the
-- sync, but counts as a commit that the sync waited for. Commits whose start or
-- end is not recorded are left out.
--
-- Kinds:
--   itself      Bios of the requests themselves: data of their own files, and
--               metadata where the thread of the sync writes it, as on btrfs.
--   own file    Bios of commits that a sync waited for, with data of a file
--               whose sync waited for that commit, or of any file if sync() or
--               syncfs did.
--   other file  Bios of these commits with data of any other file.
--   journal     Bios of these commits with what was written to the journal:
--               metadata, and in data=journal also data. For ext4, the column
--               writers of syncline_bio may say who changed a block.
--   unknown     Other bios of these commits: neither their flags nor a file say
--               what they are. Where a kernel marks no bio as metadata, flags
--               show only the last one that it writes to the journal.
--
-- Narrow: kind path writers bytes share syncs bios
--
-- Columns:
--   kind     text   As above.
--   path     text   Path of the other file. Null if it is not known.
--   writers  text   Name of the process that made the other file dirty, or
--                   several names. It is inferred from the file.
--   syncs    count  Number of sync calls that wrote them or waited for them.
--   commits  count  Number of commits. Null for itself.
--   bios     count  Number of bios.
--   bytes    bytes  Their size.
--   share    share  Part of the bytes of all kinds.
--   run      text   Name of the run, if the input holds several.
WITH
  -- The syncs that waited for each commit, or made it as a fast commit, and
  -- their files. Inferred waits count too.
  waiting AS (
    SELECT DISTINCT
      wait.run, wait.commit_id, sync.call_sync_id, sync.dev, sync.ino,
      COALESCE(sync.op, part.op) AS op
    FROM (
      SELECT run, commit_id, sync_id FROM syncline_wait
      UNION ALL
      SELECT run, commit_id, sync_id
      FROM syncline_journal
      WHERE kind = 'fast commit'
    ) AS wait
    JOIN syncline_sync AS sync
      ON sync.run = wait.run
      AND sync.sync_id = wait.sync_id
    LEFT JOIN parts_of_calls!() AS part
      ON part.run = wait.run
      AND part.sync_id = wait.sync_id
    WHERE wait.commit_id IS NOT NULL
  ),
  -- Commits that a sync waited for, recorded from start to end: otherwise some
  -- of their bios may be missing.
  known_commit AS (
    SELECT DISTINCT waiting.run, waiting.commit_id
    FROM waiting
    JOIN syncline_journal AS journal
      ON journal.run = waiting.run
      AND journal.commit_id = waiting.commit_id
    WHERE journal.dur_ns IS NOT NULL
  ),
  -- The files whose syncs waited for a commit. The bios of a commit are matched
  -- to them by inode alone, because a bio may have another device than its file
  -- system. So files of other file systems than that of the commit are left
  -- out: they may have the same inode number. Where the file system of the
  -- commit is not recorded, all of the files count.
  own_file AS (
    SELECT DISTINCT waiting.run, waiting.commit_id, waiting.ino
    FROM waiting
    JOIN syncline_journal AS journal
      ON journal.run = waiting.run
      AND journal.commit_id = waiting.commit_id
    WHERE
      waiting.ino IS NOT NULL
      AND waiting.dev = COALESCE(journal.dev, waiting.dev)
  ),
  -- The commits that a sync of a whole file system waited for, to which every
  -- file belongs.
  commit_of_all AS (
    SELECT DISTINCT run, commit_id FROM waiting WHERE op IN ('sync', 'syncfs')
  ),
  -- What each bio of these commits wrote. Bios of requests are not here: they
  -- count as `itself`.
  commit_bio AS (
    SELECT
      bio.*,
      CASE
        WHEN writes_journal!(bio) = 1 THEN 'journal'
        WHEN own_file.ino IS NOT NULL THEN 'own file'
        WHEN commit_of_all.run IS NOT NULL
        AND bio.ino IS NOT NULL THEN 'own file'
        WHEN writes_journal!(bio) = 0 THEN 'other file'
        ELSE 'unknown'
      END AS kind
    FROM syncline_bio AS bio
    JOIN known_commit
      ON known_commit.run = bio.run
      AND known_commit.commit_id = bio.commit_id
    LEFT JOIN own_file
      ON own_file.run = bio.run
      AND own_file.commit_id = bio.commit_id
      AND own_file.ino = bio.ino
    LEFT JOIN commit_of_all
      ON commit_of_all.run = bio.run
      AND commit_of_all.commit_id = bio.commit_id
    WHERE bio.sync_id IS NULL AND bio.direction = 'write'
  ),
  -- What each commit wrote, by kind, and the kind other file also by path and
  -- writers, which say for whom it is.
  by_commit AS (
    SELECT
      run, commit_id, kind,
      CASE kind WHEN 'other file' THEN path END AS path,
      CASE kind WHEN 'other file' THEN writers END AS writers,
      COUNT(*) AS bios,
      SUM(bytes) AS bytes
    FROM commit_bio
    GROUP BY 1, 2, 3, 4, 5
  ),
  -- The same, summed over all commits.
  written AS (
    SELECT
      run, kind, path, writers,
      COUNT(*) AS commits,
      SUM(bios) AS bios,
      SUM(bytes) AS bytes
    FROM by_commit
    GROUP BY run, kind, path, writers
  ),
  -- For each row of `written`, how many syncs waited for its commits. One that
  -- waited for several of them counts once.
  served AS (
    SELECT
      of!(by_commit, (run, kind, path, writers)),
      COUNT(DISTINCT waiting.call_sync_id) AS syncs
    FROM by_commit
    JOIN waiting
      ON waiting.run = by_commit.run
      AND waiting.commit_id = by_commit.commit_id
    GROUP BY of!(by_commit, (run, kind, path, writers))
  ),
  -- The rows of the result: what requests wrote, and what their commits wrote.
  amount AS (
    SELECT
      'itself' AS kind,
      CAST(NULL AS TEXT) AS path,
      CAST(NULL AS TEXT) AS writers,
      COUNT(DISTINCT COALESCE(call_sync_id, bio.sync_id)) AS syncs,
      CAST(NULL AS BIGINT) AS commits,
      COUNT(*) AS bios,
      SUM(bio.bytes) AS bytes,
      bio.run AS run
    FROM syncline_bio AS bio
    LEFT JOIN syncline_sync AS sync USING (run, sync_id)
    WHERE bio.sync_id IS NOT NULL AND bio.direction = 'write'
    GROUP BY bio.run
    UNION ALL
    SELECT
      of!(written, (kind, path, writers)),
      served.syncs,
      of!(written, (commits, bios, bytes, run))
    FROM written
    JOIN served ON same!(served, written, (run, kind, path, writers))
  )
SELECT
  kind, path, writers, syncs, commits, bios, bytes,
  share!(bytes, SUM(bytes) OVER (PARTITION BY run)) AS share,
  run
FROM amount
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
