-- Unsynced: which files were changed, and whether a sync followed.
--
-- Data that no sync covers are lost if the machine crashes before the kernel
-- has written them back, which takes half a minute or longer. So the report
-- says for each file that was written or resized whether a sync began after the
-- last change and returned without an error. Whether a program needs that sync
-- is for you to say: a cache does not.
--
-- A file keeps its identity when it gets another name. Pipes, sockets, and what
-- is below /dev, /proc and /sys are left out, because they need no sync.
--
-- States:
--   synced    A sync covers the last change, or it was durable by itself.
--   unsynced  None does.
--   failed    A sync of it failed after the last change. Whatever a later sync
--             returns, the data may be lost: the kernel reports an error once.
--   removed   The file had no name any more at the end.
--   unknown   The recording does not say. Events were lost, the file or its
--             folder has no name, the file is mapped, or it was renamed more
--             than four times, with its folder, or in exchange for another.
--             Or nobody can tell whether a sync covers it, because that was of
--             a file system or of a file without a name, or was a sync() after
--             a sync that failed.
--
-- Narrow: path state writes written_bytes unsynced_bytes syncs comm
--
-- Columns:
--   path            text   Name of the file at the end; its last one if it was
--                          removed. Null in the one row of all files without
--                          a known name.
--   folder          text   The folder of that name.
--   state           text   As above.
--   writes          count  Writes and changes of its size.
--   written_bytes   bytes  What they wrote.
--   unsynced_bytes  bytes  What was written after the last sync began. Null
--                          unless the state is synced or unsynced.
--   share           share  unsynced_bytes / those of all files.
--   syncs           count  Syncs of the file that returned without an error.
--                          Null for files without a name.
--   risk_ns         ns     From the end of the last change that needs a sync
--                          until it was synced, or written back without a sync,
--                          as far as the recording shows. Null if neither
--                          happened, and if that change has no known end.
--   comm            text   Thread that changed it last.
--   at_ns           time   When the last change began.
--   run             text   Name of the run, if the input holds several.
WITH
  -- The keys of all operations on files and of the syncs, each with a number
  -- (`seq`) in one order of all threads.
  call_order AS MATERIALIZED (SELECT * FROM file_order!()),
  -- Each name with a number, because joins on texts are slow.
  known_path AS MATERIALIZED (SELECT * FROM known_paths!()),
  -- Those that may need a sync, so no pipes and nothing below /proc.
  file_path AS (SELECT * FROM known_path WHERE is_file = 1),
  -- A step is an operation on a file that did not fail, or a sync of a whole
  -- file or more, failed or not. From here to `file_name`, `path` is a number
  -- of known_path (`path_id`); from `file_state` on, the text.
  step AS MATERIALIZED (SELECT * FROM numbered_steps!(call_order, known_path)),
  -- A row for each name of a step, of files only. `is_to` is 1 for a new name,
  -- `is_change` if the step gives or takes the name. `name_id` is one life of
  -- a name: a rename, a link or a removal begins a new one.
  name AS MATERIALIZED (
    SELECT *
    FROM file_names!(step)
    WHERE path IN (SELECT path_id FROM file_path)
  ),
  -- For each name that a rename or a link gave, as `file_id`, the `name_id` of
  -- an earlier name of the file: one rename back, up to two, and up to four.
  -- The last stands for the file.
  one_back AS (SELECT * FROM renamed_names!(name)),
  two_back AS (SELECT * FROM earlier_names!(one_back)),
  four_back AS (SELECT * FROM earlier_names!(two_back)),
  -- The steps of each file, one row each, but a rename or a link has two: for
  -- the old name and for the new. `is_taken` is 1 if the step takes the name
  -- from the file, as a rename or a removal does, and a link does not.
  step_of_file AS MATERIALIZED (
    SELECT
      of!(step, (run, seq, ts_ns, end_ns, op, bytes, ret, is_sync, is_dirty)),
      of!(name, (path, is_to)),
      COALESCE(four_back.file_id, name.name_id) AS file_id,
      name.is_change * (1 - name.is_to) AS is_taken,
      CASE
        WHEN step.op IN ('write', 'truncate', 'allocate') THEN step.seq
      END AS change_seq
    FROM step
    JOIN name ON name.seq = step.seq
    LEFT JOIN four_back ON four_back.name_id = name.name_id
  ),
  -- Files whose identity is not sure: after more than four renames, the two
  -- names of the last one lead back to different files.
  doubtful_file AS (
    SELECT one.run AS run, one.file_id AS file_id
    FROM step_of_file AS one
    JOIN step_of_file AS other
      ON other.seq = one.seq
      AND other.file_id <> one.file_id
    GROUP BY one.run, one.file_id
  ),
  -- Names whose files were exchanged, which a step takes for a plain rename.
  exchange AS (
    SELECT run, path, to_path
    FROM syncline_file_op
    WHERE flags LIKE '%RENAME_EXCHANGE%' AND COALESCE(ret, 0) >= 0
  ),
  exchanged_name AS (
    SELECT run, path FROM exchange
    UNION
    SELECT run, to_path FROM exchange
  ),
  -- Syncs of which it is not known whether they covered a file: of a file
  -- system, of a file without a name, and sync() after the kernel refused one.
  doubtful_sync AS (SELECT * FROM doubtful_syncs!(step)),
  last_doubt AS (
    SELECT run, MAX(ts_ns) AS ts_ns FROM doubtful_sync GROUP BY run
  ),
  -- Syncs without an error, a row for each file that they cover. sync() covers
  -- every file, unless it is doubtful.
  covering_sync AS (
    SELECT run, file_id, ts_ns, end_ns
    FROM step_of_file
    WHERE is_sync = 1 AND ret >= 0 AND end_ns IS NOT NULL
    UNION ALL
    SELECT file.run, file.file_id, step.ts_ns, step.end_ns
    FROM step
    JOIN (SELECT DISTINCT run, file_id FROM step_of_file) AS file
      ON file.run = step.run
    WHERE
      step.op = 'sync'
      AND step.ret >= 0
      AND step.end_ns IS NOT NULL
      AND step.seq NOT IN (SELECT seq FROM doubtful_sync)
  ),
  last_sync AS (
    SELECT run, file_id, MAX(ts_ns) AS ts_ns
    FROM covering_sync
    GROUP BY run, file_id
  ),
  -- One row a file: its changes and its syncs. `dirty_ns` is the end of its
  -- last change that needs a sync, or its begin if no end is known; one that is
  -- durable when it returns needs none. `is_unfinished` is 1 if one has no
  -- known end. `synced_ns` is when the last sync began that covers the file.
  file_total AS MATERIALIZED (
    SELECT
      of!(step_of_file, (run, file_id)),
      COUNT(change_seq) AS writes,
      SUM(CASE op WHEN 'write' THEN bytes END) AS written_bytes,
      SUM(
        CASE
          WHEN is_dirty = 1
          AND op = 'write'
          AND (last_sync.ts_ns IS NULL
          OR step_of_file.end_ns IS NULL
          OR step_of_file.end_ns > last_sync.ts_ns) THEN bytes
        END
      ) AS after_sync_bytes,
      COUNT(CASE WHEN is_sync = 1 AND ret >= 0 THEN 1 END) AS syncs,
      MAX(change_seq) AS last_seq,
      MAX(CASE is_dirty
        WHEN 1 THEN COALESCE(end_ns, step_of_file.ts_ns)
      END) AS dirty_ns,
      MAX(CASE
        WHEN is_dirty = 1 AND end_ns IS NULL THEN 1
        ELSE 0
      END) AS is_unfinished,
      MAX(last_sync.ts_ns) AS synced_ns,
      MAX(CASE
        WHEN is_sync = 1 AND ret < 0 THEN step_of_file.ts_ns
      END) AS failed_ns,
      MAX(CASE op WHEN 'map' THEN 1 ELSE 0 END) AS is_mapped
    FROM step_of_file
    LEFT JOIN last_sync
      ON last_sync.run = step_of_file.run
      AND last_sync.file_id = step_of_file.file_id
    GROUP BY step_of_file.run, step_of_file.file_id
  ),
  -- The names of each file, those that it still has first.
  file_name AS MATERIALIZED (SELECT * FROM names_of_files!(step_of_file)),
  -- The old names of renamed folders: the names below them changed too.
  moved_folder AS (
    SELECT run, path || '/' AS beginning
    FROM renamed_folders!(step, known_path)
  ),
  lossy_run AS (
    SELECT DISTINCT run FROM syncline_loss WHERE severity = 'loss' AND count > 0
  ),
  -- Each changed file and its state: the first rule that applies counts.
  file_state AS MATERIALIZED (
    SELECT
      file_total.*,
      file_path.path AS path,
      CASE
        -- If its names are not sure, the file may still have one.
        WHEN doubtful_file.run IS NOT NULL
        OR (file_total.run, file_path.path) IN (
          SELECT run, path FROM exchanged_name
        ) THEN 'unknown'
        WHEN file_name.is_gone = 1 THEN 'removed'
        -- A name without its folder, or whose folder moved, may be another's.
        WHEN lossy_run.run IS NOT NULL
        OR file_total.is_mapped = 1
        OR SUBSTR(file_path.path, 1, 1) <> '/'
        OR EXISTS (
          SELECT 1
          FROM moved_folder
          WHERE
            moved_folder.run = file_total.run
            AND moved_folder.beginning
            = SUBSTR(file_path.path, 1, LENGTH(moved_folder.beginning))
        ) THEN 'unknown'
        -- Each of its changes was durable by itself.
        WHEN file_total.dirty_ns IS NULL THEN 'synced'
        WHEN file_total.failed_ns >= file_total.dirty_ns THEN 'failed'
        WHEN file_total.is_unfinished = 0
        AND file_total.synced_ns >= file_total.dirty_ns THEN 'synced'
        WHEN last_doubt.ts_ns >= file_total.dirty_ns THEN 'unknown'
        ELSE 'unsynced'
      END AS state
    FROM file_total
    JOIN file_name
      ON file_name.run = file_total.run
      AND file_name.file_id = file_total.file_id
      AND file_name.place = 1
    JOIN file_path ON file_path.path_id = file_name.path
    LEFT JOIN doubtful_file
      ON doubtful_file.run = file_total.run
      AND doubtful_file.file_id = file_total.file_id
    LEFT JOIN last_doubt ON last_doubt.run = file_total.run
    LEFT JOIN lossy_run ON lossy_run.run = file_total.run
    WHERE file_total.writes > 0
  ),
  -- The earliest end of a sync that began at `dirty_ns` or later.
  first_sync AS MATERIALIZED (
    SELECT
      file_state.run, file_state.file_id,
      MIN(covering_sync.end_ns) AS end_ns
    FROM file_state
    JOIN covering_sync
      ON covering_sync.run = file_state.run
      AND covering_sync.file_id = file_state.file_id
    WHERE covering_sync.ts_ns >= file_state.dirty_ns
    GROUP BY file_state.run, file_state.file_id
  ),
  -- The end of the last background bio that wrote the file, of those that began
  -- at `dirty_ns` or later.
  written_back AS (
    SELECT
      file_state.run, file_state.file_id,
      MAX(bio.ts_ns + bio.dur_ns) AS end_ns
    FROM file_state
    JOIN syncline_bio AS bio
      ON bio.run = file_state.run
      AND bio.path = file_state.path
    WHERE
      bio.direction = 'write'
      AND bio.origin = 'background'
      AND COALESCE(bio.error, 0) >= 0
      AND bio.ts_ns >= file_state.dirty_ns
    GROUP BY file_state.run, file_state.file_id
  ),
  -- Each row of `file_state`, with what is at risk and for how long: both are
  -- known only in the states synced and unsynced.
  named_file AS (
    SELECT
      file_state.*,
      CASE
        WHEN file_state.state IN ('synced', 'unsynced') THEN COALESCE(
          after_sync_bytes, 0
        )
      END AS unsynced_bytes,
      CASE
        WHEN file_state.state IN ('synced', 'unsynced')
        AND file_state.is_unfinished = 0 THEN COALESCE(
          first_sync.end_ns, written_back.end_ns
        )
        - file_state.dirty_ns
      END AS risk_ns
    FROM file_state
    LEFT JOIN first_sync
      ON first_sync.run = file_state.run
      AND first_sync.file_id = file_state.file_id
    LEFT JOIN written_back
      ON written_back.run = file_state.run
      AND written_back.file_id = file_state.file_id
  ),
  -- Those, and one row a run for all files without a name.
  changed_file AS MATERIALIZED (
    SELECT
      run, path, state, writes, written_bytes, unsynced_bytes, syncs, risk_ns,
      last_seq
    FROM named_file
    UNION ALL
    SELECT
      run,
      CAST(NULL AS TEXT),
      'unknown',
      COUNT(*),
      SUM(CASE op WHEN 'write' THEN bytes END),
      CAST(NULL AS BIGINT),
      CAST(NULL AS BIGINT),
      CAST(NULL AS BIGINT),
      MAX(seq)
    FROM step
    WHERE path IS NULL AND op IN ('write', 'truncate', 'allocate')
    GROUP BY run
  )
SELECT
  of!(changed_file, (path)),
  folder_of!(changed_file.path) AS folder,
  of!(changed_file, (state, writes)),
  CAST(COALESCE(changed_file.written_bytes, 0) AS BIGINT) AS written_bytes,
  CAST(changed_file.unsynced_bytes AS BIGINT) AS unsynced_bytes,
  share!(
    changed_file.unsynced_bytes,
    SUM(changed_file.unsynced_bytes) OVER (PARTITION BY changed_file.run)
  ) AS share,
  of!(changed_file, (syncs, risk_ns)),
  last_change.comm AS comm,
  last_change.ts_ns AS at_ns,
  changed_file.run AS run
FROM changed_file
JOIN step AS last_change ON last_change.seq = changed_file.last_seq
ORDER BY
  changed_file.run,
  CASE changed_file.state
    WHEN 'unsynced' THEN 0
    WHEN 'failed' THEN 1
    WHEN 'unknown' THEN 2
    WHEN 'synced' THEN 3
    ELSE 4
  END,
  COALESCE(changed_file.unsynced_bytes, 0) DESC,
  COALESCE(changed_file.written_bytes, 0) DESC,
  changed_file.path NULLS LAST,
  changed_file.last_seq;
