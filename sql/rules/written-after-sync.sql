-- A file is changed only after its journal is synced.
--
-- Demands: when a program writes to a main file, all writes to its journal, one
-- of `files`, are synced. The name of the main file is that of the journal
-- without `suffix`.
--
-- Why: a crash may leave a part of the change in the main file. If the journal
-- is not durable by then, nothing can undo or repeat it.
--
-- Kernel: writes to two files reach the device in any order, unless a sync is
-- between them.
--
-- Instead: fsync the journal before the first write to the main file.
--
-- Parameters: files, except, suffix
--
-- Columns:
--   verdict    text   ok, violated or cannot tell.
--   fault      text   What is wrong, by a name of syncline/check/wording.py.
--   path       text   The file.
--   seq        id     The step that the fault is of.
--   other_seq  id     The write that was not synced, or a like step.
--   folder     text   The folder, or the other file, that is to be synced.
--   run        text   Name of the run, if the input holds several.
WITH
  journal AS (
    SELECT
      run,
      path AS journal,
      SUBSTR(path, 1, LENGTH(path) - LENGTH(:suffix)) AS main
    FROM _syncline_check_match
    WHERE role = 'files' AND path GLOB '*' || :suffix
  ),
  change AS (
    SELECT
      journal.run AS run,
      journal.journal AS journal,
      step.path AS path,
      step.seq AS seq,
      step.ts_ns AS ts_ns
    FROM journal
    JOIN _syncline_check_op AS step
      ON step.run = journal.run
      AND step.path = journal.main
    WHERE step.op = 'write'
  ),
  -- A journal that is removed has nothing left to sync.
  state AS (
    SELECT *
    FROM sync_state!(
      (SELECT run, journal AS file_id, ts_ns AS at_ns, seq FROM change),
      (
        SELECT
          run, seq, op,
          CASE WHEN op = 'sync' THEN '' ELSE path END AS file_id,
          ts_ns, end_ns, is_sync, is_dirty, ret
        FROM _syncline_check_op
        WHERE op <> 'open' AND (op <> 'truncate' OR offset_bytes > 0)
        UNION ALL
        SELECT run, seq, 'fsync', path, end_ns, end_ns, 1, 0, 0
        FROM _syncline_check_op
        WHERE op = 'unlink'
      ),
      (seq)
    )
  )
SELECT
  CASE state.is_synced WHEN 1 THEN 'ok' ELSE 'violated' END AS verdict,
  'ahead' AS fault,
  change.path AS path,
  change.seq AS seq,
  state.dirty_seq AS other_seq,
  change.journal AS folder,
  change.run AS run
FROM change
JOIN state ON state.seq = change.seq;
