-- Unsynced: which files were changed, and whether a sync followed.
--
-- Data that no sync covers are lost if the machine crashes before the kernel
-- has written them back, which takes half a minute or longer. So the report
-- says for each file that was written or resized whether a sync began after the
-- last change and returned without an error. Whether a program needs that sync
-- is for you to say: a cache does not.
--
-- A file keeps its identity when it gets another name. Pipes, sockets, memory
-- (/memfd:), and what is below /dev, /proc and /sys are left out, because they
-- need no sync. An open that empties a file (O_TRUNC) changes its size, unless
-- the file may be new.
--
-- A call whose length is not recorded may have run until its thread made the
-- next one or ended. If lines of a log interrupt calls (strace -f without -T),
-- one that no line interrupts had ended when any thread made the next one.
--
-- States:
--   synced    A sync covers the last change that needs one, or none needs one.
--   unsynced  No sync covers the last change.
--   failed    A sync of it failed after a change, and no open has emptied it
--             since. Whatever a later sync returns, the data may be lost: the
--             kernel reports an error once.
--   removed   The file had no name any more at the end. A file that strace -y
--             shows as `NAME (deleted)` has a row of its own.
--   unknown   The recording does not say. Events were lost, or the clock is too
--             coarse to order them (strace -t); the file or its folder has no
--             name, the file is mapped, or it was renamed more
--             than four times, with its folder, or in exchange for another. Or
--             it was written through a descriptor from before its name was
--             given to another file, which only strace -y shows. Or nobody can
--             tell whether a sync covers it: a change may not have ended when
--             the sync began, or the sync was of a file system or of a file
--             without a name, or was a sync() that failed or followed a sync
--             that failed.
--
-- Narrow: path state writes written_bytes unsynced_bytes syncs comm
--
-- Columns:
--   path            text   Name of the file at the end; its last one if it was
--                          removed. Null in the one row of all files without
--                          a known name, which may hold pipes and sockets.
--   folder          text   The folder of that name.
--   state           text   As above.
--   writes          count  Writes and changes of its size.
--   written_bytes   bytes  What they wrote. Null if the size of one is unknown.
--   unsynced_bytes  bytes  Size of the writes that need a sync and had not
--                          ended when the last sync began. Null if the size of
--                          one is unknown, and unless the state is synced or
--                          unsynced.
--   share           share  unsynced_bytes / those of all files of the run where
--                          it is known. Null if that sum is 0.
--   syncs           count  Syncs of the file that returned without an error;
--                          sync() and syncfs() do not count. Null for files
--                          without a name.
--   risk_ns         ns     From the end of the last change that needs a sync
--                          until it was synced or, if no sync followed, until
--                          the end of the last bio of background writeback of
--                          the file, which need not hold all of its data. Null
--                          if neither happened, if one of these bios failed or
--                          has no end, if that change or sync has no known end,
--                          if no change needs a sync, and in other states than
--                          synced and unsynced.
--   comm            text   Thread that changed it last.
--   at_ns           time   When the last change began.
--   run             text   Name of the run, if the input holds several.
WITH
  -- The keys of all operations on files and of the syncs, each with a number
  -- (`seq`) in one order of all threads, and when its thread makes the next
  -- call (`next_ns`).
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
  -- `is_change` if the step gives or takes the name. `name_id` stands for the
  -- time in which a name meant one file; a rename, a link or a removal ends it.
  name AS MATERIALIZED (
    SELECT *
    FROM file_names!(step)
    WHERE path IN (SELECT path_id FROM file_path)
  ),
  -- A row for each new name of a file. `file_id` is the `name_id` that the file
  -- had one rename before; in the next two tables, up to two and up to four
  -- renames before.
  one_back AS (SELECT * FROM renamed_names!(name)),
  two_back AS (SELECT * FROM earlier_names!(one_back)),
  four_back AS (SELECT * FROM earlier_names!(two_back)),
  -- The steps of each file, one row each, but a rename or a link has two: for
  -- the old name and for the new. `is_taken` is 1 if the step takes the name
  -- from the file, as a rename or a removal does, and a link does not.
  step_of_file AS MATERIALIZED (
    SELECT
      of!(step, (run, seq, ts_ns, end_ns, least_ns, op, bytes, ret)),
      of!(step, (is_sync, is_dirty, empties)),
      of!(name, (path, is_to)),
      COALESCE(four_back.file_id, name.name_id) AS file_id,
      CASE file_path.is_removed
        WHEN 1 THEN 1
        ELSE name.is_change * (1 - name.is_to)
      END AS is_taken
    FROM step
    JOIN name ON name.seq = step.seq
    JOIN file_path ON file_path.path_id = name.path
    LEFT JOIN four_back ON four_back.name_id = name.name_id
  ),
  -- The changes of each file. `is_dirty` is 1 for one that needs a sync, as it
  -- is not durable when it returns.
  change AS MATERIALIZED (
    SELECT
      of!(step_of_file, (run, file_id, seq, ts_ns, end_ns, least_ns, op)),
      CASE op WHEN 'write' THEN bytes ELSE 0 END AS bytes,
      CASE op WHEN 'open' THEN 1 ELSE is_dirty END AS is_dirty
    FROM step_of_file
    WHERE
      op IN ('write', 'truncate', 'allocate')
      OR (op = 'open' AND is_dirty = 1)
      OR seq IN (SELECT seq FROM emptying_opens!(step_of_file))
  ),
  moved_folder AS (SELECT * FROM renamed_folders!(step, known_path)),
  -- Files of which it is not known which file they are.
  unsure_file AS (
    SELECT * FROM unsure_files!(step_of_file, known_path, moved_folder)
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
    SELECT run, file_id, ts_ns, end_ns, least_ns
    FROM step_of_file
    WHERE is_sync = 1 AND ret >= 0 AND end_ns IS NOT NULL
    UNION ALL
    SELECT of!(file, (run, file_id)), of!(step, (ts_ns, end_ns, least_ns))
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
  -- One row a file with a change. `dirty_ns` is the end of its last change that
  -- needs a sync, and `least_ns` when that can have ended at the earliest; they
  -- differ if its length is not recorded, or if it has not ended.
  change_total AS (
    SELECT
      of!(change, (run, file_id)),
      COUNT(*) AS writes,
      known_sum!(bytes) AS written_bytes,
      known_sum!(
        CASE
          WHEN is_dirty = 0
          OR end_ns <= last_sync.ts_ns THEN 0
          WHEN least_ns <= last_sync.ts_ns
          AND least_ns < end_ns THEN NULL
          ELSE bytes
        END
      ) AS after_sync_bytes,
      MAX(seq) AS last_seq,
      MIN(CASE is_dirty WHEN 1 THEN change.ts_ns END) AS first_ns,
      MAX(CASE is_dirty WHEN 1 THEN least_ns END) AS least_ns,
      MAX(
        CASE is_dirty
          WHEN 1 THEN COALESCE(end_ns, CAST(4611686018427387904 AS BIGINT))
        END
      ) AS dirty_ns,
      MAX(last_sync.ts_ns) AS synced_ns
    FROM change
    LEFT JOIN last_sync ON same!(last_sync, change, (run, file_id))
    GROUP BY change.run, change.file_id
  ),
  -- The other steps of each file. `failed_ns` is when the last sync began after
  -- which data may be lost, `emptied_ns` the last open that threw them away.
  other_total AS (
    SELECT
      run, file_id,
      COUNT(CASE WHEN is_sync = 1 AND ret >= 0 THEN 1 END) AS syncs,
      MAX(CASE
        WHEN is_sync = 1 AND lost_data!(ret) THEN ts_ns
      END) AS failed_ns,
      MAX(CASE empties WHEN 1 THEN ts_ns END) AS emptied_ns,
      MAX(CASE op WHEN 'map' THEN 1 ELSE 0 END) AS is_mapped
    FROM step_of_file
    GROUP BY run, file_id
  ),
  -- The names of each file, those that it still has first.
  file_name AS MATERIALIZED (SELECT * FROM names_of_files!(step_of_file)),
  -- Each changed file and its state: the first rule that applies counts.
  file_state AS MATERIALIZED (
    SELECT
      change_total.*,
      other_total.syncs AS syncs,
      file_path.path AS path,
      CASE
        -- If it is not sure which file it is, it may still have a name.
        WHEN unsure_file.run IS NOT NULL THEN 'unknown'
        WHEN file_name.is_gone = 1 THEN 'removed'
        WHEN other_total.is_mapped = 1 THEN 'unknown'
        -- Each of its changes was durable by itself.
        WHEN dirty_ns IS NULL THEN 'synced'
        WHEN failed_ns >= first_ns
        AND COALESCE(emptied_ns <= failed_ns, TRUE) THEN 'failed'
        WHEN synced_ns >= dirty_ns THEN 'synced'
        WHEN synced_ns >= least_ns
        OR last_doubt.ts_ns >= least_ns THEN 'unknown'
        ELSE 'unsynced'
      END AS state
    FROM change_total
    JOIN other_total ON same!(other_total, change_total, (run, file_id))
    JOIN file_name ON same!(file_name, change_total, (run, file_id))
    JOIN file_path ON file_path.path_id = file_name.path
    LEFT JOIN unsure_file ON same!(unsure_file, change_total, (run, file_id))
    LEFT JOIN last_doubt ON last_doubt.run = change_total.run
    WHERE file_name.place = 1
  ),
  -- The earliest end of a sync that began at `dirty_ns` or later. Null if that
  -- is not recorded.
  first_sync AS MATERIALIZED (
    SELECT
      file_state.run, file_state.file_id,
      CASE
        WHEN MIN(sync.end_ns) = MIN(sync.least_ns) THEN MIN(sync.end_ns)
      END AS end_ns
    FROM file_state
    JOIN covering_sync AS sync ON same!(sync, file_state, (run, file_id))
    WHERE sync.ts_ns >= file_state.dirty_ns
    GROUP BY file_state.run, file_state.file_id
  ),
  -- The end of the last background bio that wrote the file, of those that began
  -- at `dirty_ns` or later. Null if one has not ended, or failed.
  written_back AS (
    SELECT
      file_state.run, file_state.file_id,
      CASE
        WHEN COUNT(*)
        = COUNT(CASE
          WHEN COALESCE(bio.error, 0) >= 0 THEN bio.dur_ns
        END) THEN MAX(
          bio.ts_ns + bio.dur_ns
        )
      END AS end_ns
    FROM file_state
    JOIN syncline_bio AS bio
      ON bio.run = file_state.run
      AND bio.path = file_state.path
    WHERE
      bio.direction = 'write'
      AND bio.origin = 'background'
      AND bio.ts_ns >= file_state.dirty_ns
    GROUP BY file_state.run, file_state.file_id
  ),
  -- Each row of `file_state`, with what is at risk and for how long: both are
  -- known only in the states synced and unsynced.
  named_file AS (
    SELECT
      file_state.*,
      CASE
        WHEN file_state.state IN ('synced', 'unsynced') THEN after_sync_bytes
      END AS unsynced_bytes,
      -- If the end of the last change is known.
      CASE
        WHEN file_state.state IN ('synced', 'unsynced')
        AND least_ns = dirty_ns THEN CASE
          WHEN first_sync.run IS NOT NULL THEN first_sync.end_ns
          ELSE written_back.end_ns
        END
        - dirty_ns
      END AS risk_ns
    FROM file_state
    LEFT JOIN first_sync ON same!(first_sync, file_state, (run, file_id))
    LEFT JOIN written_back ON same!(written_back, file_state, (run, file_id))
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
      known_sum!(CASE op WHEN 'write' THEN bytes ELSE 0 END),
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
  CAST(changed_file.written_bytes AS BIGINT) AS written_bytes,
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
