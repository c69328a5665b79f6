-- Syncs of files that can be rebuilt.
--
-- Evidence is a sync of a file whose path has a name of caches, outputs of a
-- build or temporary files. The list is rebuildable.tsv. Of /tmp, only files
-- directly in it count, because a folder in it may be that of a database. Syncs
-- by workers of the kernel, which flush a loop device, are left out.
--
-- Seen: {syncs} of {of_syncs} {are} of files that can probably be rebuilt:
-- {where}.
--
-- Cost: the time in which these syncs were all that the process waited for.
--
-- Inferred: from the path. Whether losing the file matters is for its owner to
-- say.
--
-- Instead: do not sync them. Write a mark of validity (a checksum, or a name
-- that changes), and rebuild what is damaged after a crash.
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
--   cost_ns   ns     Its duration. Null if it is not known.
--   note      prose  The pattern, and why such files can be rebuilt.
--   from_ns   time   Start of the time that it cost.
--   until_ns  time   End of that time.
--   run       text   Name of the run, if the input holds several.
WITH
  pattern(place, path, reason) AS (VALUES (:patterns)),
  found AS (
    SELECT sync.run AS run, sync.sync_id AS sync_id, MIN(pattern.place) AS place
    FROM syncline_sync AS sync
    JOIN pattern ON sync.path GLOB pattern.path
    WHERE COALESCE(sync.comm, '') NOT GLOB 'kworker/*'
    GROUP BY sync.run, sync.sync_id
  )
SELECT
  sync.sync_id AS sync_id,
  sync.ts_ns AS ts_ns,
  sync.comm AS comm,
  sync.path AS path,
  sync.dur_ns AS cost_ns,
  pattern.path || ': ' || pattern.reason AS note,
  CASE WHEN sync.dur_ns IS NOT NULL THEN sync.ts_ns END AS from_ns,
  sync.ts_ns + sync.dur_ns AS until_ns,
  sync.run AS run
FROM found
JOIN syncline_sync AS sync
  ON sync.run = found.run
  AND sync.sync_id = found.sync_id
JOIN pattern ON pattern.place = found.place
LEFT JOIN _syncline_of_kernel AS of_kernel
  ON of_kernel.run = sync.run
  AND of_kernel.sync_id = sync.sync_id
WHERE pattern.reason <> '-' AND of_kernel.sync_id IS NULL
ORDER BY cost_ns DESC NULLS LAST, sync.run, sync.sync_id;
