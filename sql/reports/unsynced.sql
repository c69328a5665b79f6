-- Unsynced: which files were changed, and whether a sync followed.
--
-- Data that no sync covers are lost if the machine crashes before the kernel
-- has written them back, which takes half a minute or longer. The report says
-- for each file that was written, resized or renamed over another one whether
-- a sync that returned without an error began after the last change. A file
-- keeps its identity when it is renamed; its row has its last name. Whether a
-- program needs the sync is for you to say: a cache does not.
--
-- States:
--   synced    A sync covers the last change, or it was durable by itself.
--   unsynced  None does.
--   failed    A sync of it failed after the last change. Whatever a later sync
--             returns, the data may be lost: the kernel reports an error once.
--   removed   The file had no name any more at the end.
--   unknown   Not all changes or syncs are known: events were lost, the file is
--             mapped, its folder was renamed, or a sync is of a file or file
--             system without a name.
--
-- Narrow: path state writes written_bytes unsynced_bytes syncs comm
--
-- Columns:
--   path            text   Last name of the file.
--   folder          text   The folder of that name.
--   state           text   As above.
--   writes          count  Writes and changes of its size.
--   written_bytes   bytes  What they wrote.
--   unsynced_bytes  bytes  What was written after the last sync began. Null if
--                          the state is not known, or removed.
--   share           share  unsynced_bytes / those of all files.
--   syncs           count  Syncs of the file that returned without an error.
--   risk_ns         ns     From the end of the last change until it was synced,
--                          or written back without a sync, as far as the
--                          recording shows. Null if neither happened.
--   comm            text   Thread that changed it last.
--   at_ns           time   When the last change began.
--   run             text   Name of the run, if the input holds several.
WITH
  step AS (SELECT * FROM file_steps!((SELECT * FROM file_order!()))),
  name AS (SELECT * FROM file_names!(step)),
  -- A new name continues the life of an old one. Four renames, one after the
  -- other, are followed back.
  renamed AS (
    SELECT new.run, new.name_id, old.name_id AS old_id
    FROM name AS new
    JOIN name AS old
      ON old.run = new.run
      AND old.seq = new.seq
      AND old.is_to = 0
    WHERE new.is_to = 1
  ),
  twice_renamed AS (
    SELECT
      one.run AS run,
      one.name_id AS name_id,
      COALESCE(two.old_id, one.old_id) AS old_id
    FROM renamed AS one
    LEFT JOIN renamed AS two ON two.run = one.run AND two.name_id = one.old_id
  ),
  first_name AS (
    SELECT
      one.run AS run,
      one.name_id AS name_id,
      COALESCE(two.old_id, one.old_id) AS file_id
    FROM twice_renamed AS one
    LEFT JOIN twice_renamed AS two
      ON two.run = one.run
      AND two.name_id = one.old_id
  ),
  -- The steps of each file, whatever name it had.
  of_file AS (
    SELECT
      step.*,
      name.path AS name,
      name.is_to AS is_to,
      name.is_change AS is_change,
      COALESCE(first_name.file_id, name.name_id) AS file_id
    FROM step
    JOIN name ON name.run = step.run AND name.seq = step.seq
    LEFT JOIN first_name
      ON first_name.run = name.run
      AND first_name.name_id = name.name_id
  ),
  changed AS (
    SELECT
      run, file_id,
      COUNT(
        CASE
          WHEN op IN ('write', 'truncate', 'allocate')
          AND is_to = 0 THEN 1
        END
      ) AS writes,
      SUM(CASE op WHEN 'write' THEN bytes END) AS written_bytes,
      COUNT(CASE WHEN is_sync = 1 AND ret >= 0 THEN 1 END) AS syncs,
      MAX(CASE
        WHEN op IN ('write', 'truncate', 'allocate') THEN seq
      END) AS last_seq,
      -- Some writes are durable when they return.
      MAX(CASE is_dirty WHEN 1 THEN COALESCE(end_ns, ts_ns) END) AS last_ns,
      MAX(CASE
        WHEN is_dirty = 1 AND end_ns IS NULL THEN 1
        ELSE 0
      END) AS is_open,
      MAX(
        CASE WHEN is_sync = 1 AND ret >= 0 AND end_ns IS NOT NULL THEN ts_ns END
      ) AS synced_ns,
      MAX(CASE WHEN is_sync = 1 AND ret < 0 THEN ts_ns END) AS failed_ns,
      MAX(CASE op WHEN 'map' THEN 1 ELSE 0 END) AS is_mapped
    FROM of_file
    GROUP BY run, file_id
  ),
  -- sync() covers all files; a sync of a file system, or of what has no name,
  -- may cover any.
  everything AS (
    SELECT
      run,
      MAX(CASE
        WHEN op = 'sync' AND end_ns IS NOT NULL THEN ts_ns
      END) AS synced_ns,
      MAX(CASE WHEN op = 'syncfs' OR path IS NULL THEN ts_ns END) AS other_ns
    FROM step
    WHERE is_sync = 1 AND ret >= 0
    GROUP BY run
  ),
  lossy AS (
    SELECT DISTINCT run FROM syncline_loss WHERE severity = 'loss' AND count > 0
  ),
  -- The file that each name is of at the end, and the last name of each file.
  now AS (
    SELECT run, name AS path, file_id
    FROM (
      SELECT
        run, name, file_id,
        ROW_NUMBER() OVER (
          PARTITION BY run, name
          ORDER BY seq DESC, is_to DESC
        ) AS place
      FROM of_file
    ) AS use
    WHERE place = 1
  ),
  last_name AS (
    SELECT run, file_id, path, is_taken
    FROM (
      SELECT
        run, file_id,
        name AS path,
        CASE WHEN is_change = 1 AND is_to = 0 THEN 1 ELSE 0 END AS is_taken,
        ROW_NUMBER() OVER (
          PARTITION BY run, file_id
          ORDER BY seq DESC, is_to DESC
        ) AS place
      FROM of_file
    ) AS use
    WHERE place = 1
  ),
  -- Folders that were renamed: the names below them changed too.
  moved AS (
    SELECT DISTINCT step.run AS run, step.path AS folder
    FROM step
    JOIN (SELECT DISTINCT run, folder_of!(path) AS path FROM name) AS folder
      ON folder.run = step.run
      AND folder.path = step.path
    WHERE step.op = 'rename' AND step.path <> ''
  ),
  moved_file AS (
    SELECT DISTINCT last_name.run AS run, last_name.file_id AS file_id
    FROM last_name
    JOIN moved
      ON moved.run = last_name.run
      AND SUBSTR(last_name.path, 1, LENGTH(moved.folder) + 1)
      = moved.folder || '/'
  ),
  state AS (
    SELECT
      of!(changed, (run, file_id, writes, written_bytes, syncs, last_seq)),
      of!(changed, (last_ns, is_open)),
      last_name.path AS path,
      later!(changed.synced_ns, everything.synced_ns) AS synced_ns,
      CASE
        WHEN last_name.is_taken = 1
        OR now.file_id <> changed.file_id THEN 'removed'
        WHEN lossy.run IS NOT NULL
        OR moved_file.run IS NOT NULL
        OR changed.is_mapped = 1 THEN 'unknown'
        WHEN changed.last_ns IS NULL THEN 'synced'
        WHEN changed.failed_ns >= changed.last_ns THEN 'failed'
        WHEN changed.is_open = 0
        AND changed.synced_ns >= changed.last_ns THEN 'synced'
        WHEN changed.is_open = 0
        AND everything.synced_ns >= changed.last_ns THEN 'synced'
        WHEN everything.other_ns >= changed.last_ns THEN 'unknown'
        ELSE 'unsynced'
      END AS state
    FROM changed
    JOIN last_name
      ON last_name.run = changed.run
      AND last_name.file_id = changed.file_id
    JOIN now ON now.run = last_name.run AND now.path = last_name.path
    LEFT JOIN moved_file
      ON moved_file.run = changed.run
      AND moved_file.file_id = changed.file_id
    LEFT JOIN everything ON everything.run = changed.run
    LEFT JOIN lossy ON lossy.run = changed.run
    WHERE changed.writes > 0
  ),
  -- What was written after the last sync had begun.
  rest AS (
    SELECT
      state.run AS run,
      state.file_id AS file_id,
      SUM(COALESCE(of_file.bytes, 0)) AS bytes
    FROM state
    JOIN of_file ON of_file.run = state.run AND of_file.file_id = state.file_id
    WHERE
      of_file.is_dirty = 1
      AND (state.synced_ns IS NULL
      OR of_file.end_ns IS NULL
      OR of_file.end_ns > state.synced_ns)
    GROUP BY state.run, state.file_id
  ),
  -- When the last change became durable: by the first sync after it, of the
  -- file or of everything, or by the last bio that the kernel wrote of the file
  -- without one.
  durable_sync AS (
    SELECT run, file_id, ts_ns, end_ns
    FROM of_file
    WHERE is_sync = 1 AND ret >= 0
    UNION ALL
    SELECT changed.run, changed.file_id, step.ts_ns, step.end_ns
    FROM step
    JOIN changed ON changed.run = step.run
    WHERE step.op = 'sync' AND step.ret >= 0
  ),
  safe AS (
    SELECT
      state.run AS run,
      state.file_id AS file_id,
      MIN(durable_sync.end_ns) AS safe_ns
    FROM state
    JOIN durable_sync
      ON durable_sync.run = state.run
      AND durable_sync.file_id = state.file_id
    WHERE durable_sync.ts_ns >= state.last_ns
    GROUP BY state.run, state.file_id
  ),
  written_back AS (
    SELECT
      state.run AS run,
      state.file_id AS file_id,
      MAX(bio.ts_ns + bio.dur_ns) AS safe_ns
    FROM state
    JOIN syncline_bio AS bio ON bio.run = state.run AND bio.path = state.path
    WHERE
      bio.direction = 'write'
      AND bio.origin = 'background'
      AND bio.ts_ns >= state.last_ns
    GROUP BY state.run, state.file_id
  ),
  file AS (
    SELECT
      state.*,
      CASE
        WHEN state.state = 'synced' THEN 0
        WHEN state.state = 'unsynced' THEN rest.bytes
      END AS unsynced_bytes,
      CASE
        WHEN state.state IN ('synced', 'unsynced') THEN COALESCE(
          safe.safe_ns, written_back.safe_ns
        )
        - state.last_ns
      END AS risk_ns
    FROM state
    LEFT JOIN rest ON rest.run = state.run AND rest.file_id = state.file_id
    LEFT JOIN safe ON safe.run = state.run AND safe.file_id = state.file_id
    LEFT JOIN written_back
      ON written_back.run = state.run
      AND written_back.file_id = state.file_id
  )
SELECT
  file.path AS path,
  folder_of!(file.path) AS folder,
  file.state AS state,
  file.writes AS writes,
  CAST(file.written_bytes AS BIGINT) AS written_bytes,
  CAST(file.unsynced_bytes AS BIGINT) AS unsynced_bytes,
  share!(
    file.unsynced_bytes,
    SUM(file.unsynced_bytes) OVER (PARTITION BY file.run)
  ) AS share,
  file.syncs AS syncs,
  file.risk_ns AS risk_ns,
  last_change.comm AS comm,
  last_change.ts_ns AS at_ns,
  file.run AS run
FROM file
JOIN step AS last_change
  ON last_change.run = file.run
  AND last_change.seq = file.last_seq
ORDER BY
  file.run,
  CASE file.state
    WHEN 'unsynced' THEN 0
    WHEN 'failed' THEN 1
    WHEN 'unknown' THEN 2
    WHEN 'synced' THEN 3
    ELSE 4
  END,
  COALESCE(file.unsynced_bytes, 0) DESC,
  file.written_bytes DESC,
  file.path;
