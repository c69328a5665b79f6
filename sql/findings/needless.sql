-- Needless syncs: nothing was dirty.
--
-- Evidence is an empty sync, which caused no bio, that waited for no commit and
-- for no writeback of others either, and that follows a sync of the same file.
-- In between, nobody else wrote page cache back, which could have been that of
-- the file. Left out are syncs of whole file systems, of folders, which hold
-- the names of files that were synced, of files that had a failed sync or bio
-- before, because their data may be lost, syncs that overlap another sync of
-- the file, and those by threads of the kernel, which flush a loop device.
--
-- Where waits for commits are not recorded, evidence is only a sync that was
-- shorter than each bio of the recording: in a commit is at least one.
--
-- Seen: {syncs} of {of_syncs} found nothing to write: {where}.
--
-- Cost: the time in which these syncs were all that the process waited for.
--
-- Inferred: where the recording does not say whether a sync waited for a
-- commit, that it was too short for one.
--
-- Instead: sync once after the last write. A library may sync what its caller
-- has synced already.
--
-- Needs: sync.bios
--
-- Not checked: it needs the bios of each sync, which the routes dynamic-events,
-- ring-buffer and bpftrace record.
--
-- Columns:
--   sync_id   id     The sync.
--   ts_ns     time   Its start.
--   comm      text   Name of its thread.
--   path      text   Path of its file.
--   cost_ns   ns     Its duration.
--   note      prose  What was seen.
--   from_ns   time   Start of the time that it cost.
--   until_ns  time   End of that time.
--   run       text   Name of the run, if the input holds several.
WITH
  -- The syncs of one file, with what names it.
  request AS (
    SELECT
      run, sync_id, call_sync_id, ts_ns,
      ts_ns + dur_ns AS end_ns,
      comm, op, path, bios, ret, journal_ns, incomplete, dev,
      CASE
        WHEN ino IS NOT NULL THEN COALESCE(dev, '') || ' ' || CAST(ino AS TEXT)
        ELSE path
      END AS file
    FROM syncline_sync
    WHERE op IS NULL OR op NOT IN ('sync', 'syncfs')
  ),
  -- The syncs of the same file before it: the end of the last one, and the
  -- latest end of all of them.
  ordered AS (
    SELECT
      *,
      LAG(end_ns) OVER same AS since_ns,
      MAX(end_ns) OVER (
        PARTITION BY run, file
        ORDER BY ts_ns, sync_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ns,
      COALESCE(LEAD(ts_ns) OVER same < end_ns, FALSE) AS is_joined
    FROM request
    WHERE file IS NOT NULL
    WINDOW same AS (PARTITION BY run, file ORDER BY ts_ns, sync_id)
  ),
  -- Whether the recording says how many folios a bio has.
  recorded AS (
    SELECT run, COUNT(folios) AS with_folios FROM syncline_bio GROUP BY run
  ),
  -- Writeback of page cache that no sync asked for. Without folios, all that
  -- is not of a journal may be such.
  written AS (
    SELECT bio.run AS run, bio.ts_ns AS ts_ns
    FROM syncline_bio AS bio
    JOIN recorded ON recorded.run = bio.run
    WHERE
      bio.sync_id IS NULL
      AND bio.direction = 'write'
      AND (bio.folios > 0 OR with_folios = 0)
      AND bio.tid NOT IN (
        SELECT tid
        FROM syncline_journal
        WHERE kind = 'commit' AND tid IS NOT NULL
      )
  ),
  -- When such writeback last began before a sync did.
  before AS (
    SELECT run, sync_id, fact_ns AS written_ns
    FROM latest_until!(
      (SELECT run, sync_id, ts_ns AS at_ns FROM syncline_sync),
      (SELECT run, ts_ns AS at_ns, ts_ns AS value_ns FROM written),
      (sync_id),
      (run)
    )
  ),
  -- Syncs that waited for writeback that somebody else had begun.
  waited AS (
    SELECT DISTINCT run, sync_id
    FROM syncline_phase
    WHERE phase = 'earlier writeback' AND dur_ns > 0
  ),
  -- Failures of a file: of a sync at its end, of a bio at its completion.
  failure AS (
    SELECT run, dev, file, MIN(failed_ns) AS failed_ns
    FROM (
      SELECT run, dev, file, COALESCE(end_ns, ts_ns) AS failed_ns
      FROM request
      WHERE ret < 0
      UNION ALL
      SELECT
        bio.run, request.dev, request.file,
        COALESCE(bio.ts_ns + bio.dur_ns, bio.ts_ns)
      FROM syncline_bio AS bio
      JOIN request ON request.run = bio.run AND request.sync_id = bio.sync_id
      WHERE bio.error < 0
      UNION ALL
      SELECT
        run, dev,
        COALESCE(dev, '') || ' ' || CAST(ino AS TEXT),
        COALESCE(ts_ns + dur_ns, ts_ns)
      FROM syncline_bio
      WHERE error < 0 AND ino IS NOT NULL AND direction <> 'read'
    ) AS one
    WHERE file IS NOT NULL
    GROUP BY run, dev, file
  ),
  -- The shortest bio that writes.
  fastest AS (
    SELECT run, MIN(dur_ns) AS dur_ns
    FROM syncline_bio
    WHERE direction <> 'read'
    GROUP BY run
  )
SELECT
  ordered.sync_id AS sync_id,
  ordered.ts_ns AS ts_ns,
  ordered.comm AS comm,
  ordered.path AS path,
  ordered.end_ns - ordered.ts_ns AS cost_ns,
  'nothing written; '
  || CASE
    WHEN ordered.journal_ns = 0 THEN 'no commit'
    ELSE 'shorter than each bio'
  END AS note,
  ordered.ts_ns AS from_ns,
  ordered.end_ns AS until_ns,
  ordered.run AS run
FROM ordered
JOIN before ON same!(before, ordered, (run, sync_id))
LEFT JOIN waited ON same!(waited, ordered, (run, sync_id))
LEFT JOIN may_be_folder!() AS folder ON same!(folder, ordered, (run, sync_id))
LEFT JOIN failure
  ON failure.run = ordered.run
  AND failure.dev IS NOT DISTINCT FROM ordered.dev
  AND failure.file = ordered.file
LEFT JOIN fastest ON fastest.run = ordered.run
LEFT JOIN _syncline_of_kernel AS of_kernel
  ON of_kernel.run = ordered.run
  AND of_kernel.sync_id = ordered.sync_id
-- A call that wrote another file was not in vain.
JOIN syncline_sync_call AS call
  ON call.run = ordered.run
  AND call.call_sync_id = ordered.call_sync_id
WHERE
  ordered.bios = 0
  AND call.bios = 0
  AND COALESCE(ordered.comm, '') NOT GLOB 'kworker/*'
  AND of_kernel.sync_id IS NULL
  AND ordered.incomplete IS NULL
  AND ordered.ret >= 0
  AND ordered.since_ns IS NOT NULL
  AND ordered.reached_ns <= ordered.ts_ns
  AND NOT ordered.is_joined
  AND (before.written_ns IS NULL OR before.written_ns < ordered.since_ns)
  AND waited.sync_id IS NULL
  AND folder.sync_id IS NULL
  AND (failure.failed_ns IS NULL OR failure.failed_ns > ordered.end_ns)
  AND (ordered.journal_ns = 0
  OR (ordered.journal_ns IS NULL
  AND ordered.end_ns - ordered.ts_ns < fastest.dur_ns))
ORDER BY cost_ns DESC, ordered.run, ordered.sync_id;
