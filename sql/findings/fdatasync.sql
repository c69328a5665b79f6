-- fsync where fdatasync would do: only the times of the file had changed.
--
-- Evidence is an fsync that wrote data and waited for a commit of jbd2 that
-- logged one block of metadata, which is the inode. An allocation of blocks
-- changes more. Only what is before the last block known of the file counts: in
-- that block or behind it, the file may have grown, and a new size needs the
-- commit. A sync that waited for an earlier commit too is left out, because
-- that one may hold the other blocks.
--
-- Seen: {syncs} of {of_syncs} waited for a commit that held only an
-- inode: {where}.
--
-- Cost: the time in which the process waited only for these commits. If the
-- device has a volatile cache, the flush in it remains with fdatasync.
--
-- Inferred: that only times have changed is not recorded. fdatasync needs the
-- commit too if the blocks were allocated in advance and not written yet. A
-- change of an extended attribute may be in the inode too, and fdatasync does
-- not make it durable.
--
-- Instead: call fdatasync where only overwritten data must be durable.
--
-- Needs: sync.journal_ns journal.tid wait.commit_id bio.tid
--
-- Not checked: it needs the waits for commits and the bios of the journal's
-- thread, which the routes dynamic-events and ring-buffer (on a patched kernel)
-- record on ext4.
--
-- Columns:
--   sync_id   id     The sync.
--   ts_ns     time   Its start.
--   comm      text   Name of its thread.
--   path      text   Path of its file.
--   cost_ns   ns     Time from the start to the end of its waits for commits.
--   note      prose  What was seen.
--   from_ns   time   Start of the time that it cost.
--   until_ns  time   End of that time.
--   run       text   Name of the run, if the input holds several.
WITH
  -- A bio of the journal's thread is of the commit that began last before it.
  journal_bio AS (
    SELECT run, tid, at_ns, fact_ns AS commit_ns
    FROM latest_until!(
      (
        SELECT run, tid, ts_ns AS at_ns, bio_id
        FROM syncline_bio
        WHERE
          sync_id IS NULL
          AND direction = 'write'
          AND folios IS NULL
          AND tid IN (SELECT tid FROM syncline_journal WHERE kind = 'commit')
      ),
      (
        SELECT run, tid, ts_ns AS at_ns, ts_ns AS value_ns
        FROM syncline_journal
        WHERE kind = 'commit' AND dur_ns IS NOT NULL
      ),
      (bio_id),
      (run, tid)
    )
  ),
  -- How many blocks each commit logged.
  logged AS (
    SELECT of!(journal, (run, commit_id, transaction_id)), COUNT(*) AS bios
    FROM syncline_journal AS journal
    JOIN journal_bio AS bio
      ON bio.run = journal.run
      AND bio.tid = journal.tid
      AND bio.commit_ns = journal.ts_ns
      AND bio.at_ns <= journal.ts_ns + journal.dur_ns
    WHERE journal.kind = 'commit'
    GROUP BY journal.run, journal.commit_id, journal.transaction_id
  ),
  -- The commit that each sync waited for.
  wait AS (
    SELECT
      run, sync_id,
      -- Null for a fast commit, which says nothing of the full one.
      MIN(commit_id) AS commit_id,
      COUNT(DISTINCT commit_id) AS commits,
      MIN(ts_ns) AS from_ns,
      MAX(ts_ns + dur_ns) AS until_ns
    FROM syncline_wait
    WHERE wait <> 'flush'
    GROUP BY run, sync_id
  ),
  -- Syncs that waited for an earlier commit too.
  earlier AS (
    SELECT DISTINCT run, sync_id
    FROM syncline_phase
    WHERE phase = 'earlier commit' AND dur_ns > 0
  ),
  -- Each sync, with the end of its file as far as earlier ones show it.
  request AS (
    SELECT
      *,
      MAX(last_offset) OVER (
        PARTITION BY run, dev, ino, path
        ORDER BY ts_ns, sync_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS known_end
    FROM syncline_sync
  )
SELECT
  request.sync_id AS sync_id,
  request.ts_ns AS ts_ns,
  request.comm AS comm,
  request.path AS path,
  wait.until_ns - wait.from_ns AS cost_ns,
  'wrote bytes ' || CAST(request.first_offset AS TEXT) || ' to '
  || CAST(request.last_offset AS TEXT)
  || '; transaction '
  || CAST(logged.transaction_id AS TEXT)
  || ' held one block' AS note,
  wait.from_ns AS from_ns,
  wait.until_ns AS until_ns,
  request.run AS run
FROM request
JOIN wait ON wait.run = request.run AND wait.sync_id = request.sync_id
JOIN logged ON logged.run = request.run AND logged.commit_id = wait.commit_id
LEFT JOIN earlier
  ON earlier.run = request.run
  AND earlier.sync_id = request.sync_id
WHERE
  request.op = 'fsync'
  AND earlier.sync_id IS NULL
  AND request.bios > 0
  AND request.incomplete IS NULL
  AND request.ret >= 0
  AND wait.commits = 1
  -- A descriptor, the block, and the block that ends the transaction.
  AND logged.bios = 3
  AND request.last_offset < request.known_end
ORDER BY cost_ns DESC, request.run, request.sync_id;
