-- A file is replaced, and its folder is not synced.
--
-- Evidence is a sync that wrote data, where the next sync of the same path is
-- of another inode, and in between nobody synced the folder, the inode under
-- another path, or the whole file system. Left out are the journals of SQLite
-- (-journal, -wal), which are deleted and not replaced, and btrfs, which gives
-- each new file another inode number, so that a file that was deleted looks the
-- same. Elsewhere, a deleted file usually leaves its number to the next one.
--
-- Seen: {syncs} of {of_syncs} {are} of a file whose name was then given to
-- a new file without a sync of the folder: {where}.
--
-- Cost: not known. It is a risk, and no time: after a crash the name may be
-- that of the old file, until the next commit of the file system.
--
-- Inferred: renames are not recorded. The file may have been deleted instead,
-- and then needs no sync at all.
--
-- Instead: after the rename, open the folder and sync it.
--
-- Needs: sync.bios sync.ino sync.path
--
-- Not checked: it needs the inode and the path of each sync, which the routes
-- dynamic-events, ring-buffer and bpftrace record.
--
-- Columns:
--   sync_id   id     The sync.
--   ts_ns     time   Its start.
--   comm      text   Name of its thread.
--   path      text   Path of its file.
--   cost_ns   ns     Null.
--   note      prose  What was seen.
--   from_ns   time   Null.
--   until_ns  time   Null.
--   run       text   Name of the run, if the input holds several.
WITH
  -- Each sync, with the next one of its path, which may be of another inode.
  request AS (
    SELECT
      *,
      LEAD(ino) OVER same AS next_ino,
      LEAD(sync_id) OVER same AS next_id,
      LEAD(ts_ns) OVER same AS next_ns,
      folder_of!(path) AS folder
    FROM syncline_sync
    WHERE ino IS NOT NULL AND path IS NOT NULL
    WINDOW same AS (PARTITION BY run, dev, path ORDER BY ts_ns, sync_id)
  ),
  -- Files whose name was that of another inode at the next sync.
  replaced AS (
    SELECT *
    FROM request
    WHERE
      next_ino <> ino
      AND path NOT GLOB '*-journal'
      AND path NOT GLOB '*-wal'
      AND COALESCE(fs, '') <> 'btrfs'
      AND bios > 0
      AND incomplete IS NULL
      AND ret >= 0
  ),
  -- Those that a later sync made durable: of the folder, of the file under its
  -- new name, or of everything.
  covered AS (
    SELECT DISTINCT replaced.run AS run, replaced.sync_id AS sync_id
    FROM replaced
    JOIN syncline_sync AS other
      ON other.run = replaced.run
      AND other.path = replaced.folder
    WHERE other.ts_ns > replaced.ts_ns AND other.ts_ns < replaced.next_ns
    UNION
    SELECT DISTINCT replaced.run, replaced.sync_id
    FROM replaced
    JOIN syncline_sync AS other
      ON other.run = replaced.run
      AND other.dev IS NOT DISTINCT FROM replaced.dev
      AND other.ino = replaced.ino
    WHERE
      other.path <> replaced.path
      AND other.ts_ns > replaced.ts_ns
      AND other.ts_ns < replaced.next_ns
    UNION
    SELECT DISTINCT replaced.run, replaced.sync_id
    FROM replaced
    JOIN syncline_sync AS other ON other.run = replaced.run
    WHERE
      other.op IN ('sync', 'syncfs')
      AND other.ts_ns > replaced.ts_ns
      AND other.ts_ns < replaced.next_ns
  )
SELECT
  replaced.sync_id AS sync_id,
  replaced.ts_ns AS ts_ns,
  replaced.comm AS comm,
  replaced.path AS path,
  CAST(NULL AS BIGINT) AS cost_ns,
  'at sync ' || CAST(replaced.next_id AS TEXT)
  || ' the name is that of another inode' AS note,
  CAST(NULL AS BIGINT) AS from_ns,
  CAST(NULL AS BIGINT) AS until_ns,
  replaced.run AS run
FROM replaced
LEFT JOIN covered
  ON covered.run = replaced.run
  AND covered.sync_id = replaced.sync_id
LEFT JOIN _syncline_of_kernel AS of_kernel
  ON of_kernel.run = replaced.run
  AND of_kernel.sync_id = replaced.sync_id
WHERE covered.sync_id IS NULL AND of_kernel.sync_id IS NULL
ORDER BY replaced.run, replaced.sync_id;
