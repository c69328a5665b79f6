-- A file is synced again after it was renamed.
--
-- Evidence is a sync that wrote no data, of the inode that the same thread
-- synced just before under another path.
--
-- Seen: {syncs} of {of_syncs} {are} of a file that was synced under another
-- name before, and wrote no data: {where}.
--
-- Cost: the time in which these syncs were all that the process waited for. A
-- sync of the folder instead costs about as much.
--
-- Inferred: the rename is not recorded. A hard link gives the same events.
--
-- Instead: sync the file before the rename and its folder after it. Only the
-- folder holds the new name. ext4, xfs and f2fs may write the name with the
-- file; POSIX does not promise it.
--
-- Needs: sync.bios sync.ino sync.path
--
-- Not checked: it needs the inode and the path of each sync, which the routes
-- dynamic-events, ring-buffer and bpftrace record.
--
-- Columns:
--   sync_id   id     The second sync.
--   ts_ns     time   Its start.
--   comm      text   Name of its thread.
--   path      text   Path of its file.
--   cost_ns   ns     Its duration.
--   note      prose  What was seen.
--   from_ns   time   Start of the time that it cost.
--   until_ns  time   End of that time.
--   run       text   Name of the run, if the input holds several.
WITH
  request AS (
    SELECT
      *,
      LAG(sync_id) OVER same AS former_id,
      LAG(path) OVER same AS former_path,
      LAG(tid) OVER same AS former_tid,
      LAG(bios) OVER same AS former_bios
    FROM syncline_sync
    WHERE ino IS NOT NULL AND path IS NOT NULL
    WINDOW same AS (PARTITION BY run, dev, ino ORDER BY ts_ns, sync_id)
  )
SELECT
  request.sync_id AS sync_id,
  ts_ns, comm, path,
  dur_ns AS cost_ns,
  'sync ' || CAST(former_id AS TEXT) || ' was of the same inode as '
  || former_path AS note,
  ts_ns AS from_ns,
  ts_ns + dur_ns AS until_ns,
  request.run AS run
FROM request
LEFT JOIN _syncline_of_kernel AS of_kernel
  ON of_kernel.run = request.run
  AND of_kernel.sync_id = request.sync_id
WHERE
  of_kernel.sync_id IS NULL
  AND bios = 0
  AND incomplete IS NULL
  AND ret >= 0
  AND former_path <> path
  AND former_tid = tid
  AND former_bios > 0
ORDER BY cost_ns DESC, request.run, request.sync_id;
