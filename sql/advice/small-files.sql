-- Small files that one thread syncs one after the other.
--
-- Evidence is a sync in a row of at least 8 by the same thread, each of another
-- file of the same folder, of at most 64 KiB, that is synced once in the
-- recording. A sync of something else ends the row.
--
-- Seen: {syncs} of {of_syncs} syncs are each of a small file of its own, one
-- after the other: {where}.
--
-- Cost: the time in which these syncs were all that the process waited for. It
-- is the most that can be saved: the last sync, or one for all, remains.
--
-- Instead: sync the files at the same time (io_uring, or several threads), so
-- that they share commits and flushes; or write them all, then call syncfs
-- once; or keep the records in one file.
--
-- Inferred: where no bytes are recorded (strace), that the files are small.
--
-- Needs: sync.path
--
-- Not checked: it needs the path of each sync, which all routes record.
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
  sized AS (SELECT run FROM syncline_sync GROUP BY run HAVING COUNT(bytes) > 0),
  once AS (
    SELECT run, path
    FROM syncline_sync
    WHERE
      path IS NOT NULL
    GROUP BY
      run,
      path
    HAVING
      COUNT(*) = 1
  ),
  request AS (
    SELECT
      sync.run AS run,
      sync.sync_id AS sync_id,
      sync.ts_ns AS ts_ns,
      sync.ts_ns + sync.dur_ns AS end_ns,
      sync.tid AS tid,
      sync.pid AS pid,
      sync.comm AS comm,
      sync.path AS path,
      sync.bytes AS bytes,
      RTRIM(sync.path, REPLACE(sync.path, '/', '')) AS folder,
      CASE
        WHEN once.path IS NOT NULL
        AND sync.op IN ('fsync', 'fdatasync')
        AND (sync.bytes BETWEEN 1 AND 65536 OR sized.run IS NULL)
        AND sync.dur_ns IS NOT NULL THEN 1
        ELSE 0
      END AS is_small
    FROM syncline_sync AS sync
    LEFT JOIN sized ON sized.run = sync.run
    LEFT JOIN once ON once.run = sync.run AND once.path = sync.path
  ),
  numbered AS (
    SELECT
      *,
      ROW_NUMBER() OVER (PARTITION BY run, tid, pid ORDER BY ts_ns, sync_id)
      - ROW_NUMBER() OVER (
        PARTITION BY
          run,
          tid,
          pid,
          folder,
          is_small
        ORDER BY ts_ns, sync_id
      ) AS island
    FROM request
  ),
  counted AS (
    SELECT *, COUNT(*) OVER same AS files
    FROM numbered
    WINDOW
      same AS (PARTITION BY run, tid, pid, folder, is_small, island)
  )
SELECT
  sync_id,
  ts_ns,
  comm,
  path,
  end_ns - ts_ns AS cost_ns,
  COALESCE(CAST(bytes AS TEXT) || ' bytes; ', '') || 'one of '
  || CAST(files AS TEXT)
  || ' files in a row' AS note,
  ts_ns AS from_ns,
  end_ns AS until_ns,
  run
FROM counted
WHERE
  is_small = 1
  AND files >= 8
ORDER BY
  cost_ns DESC,
  run,
  sync_id;
