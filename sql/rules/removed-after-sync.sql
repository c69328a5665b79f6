-- A journal is removed only after the file that it protects is synced.
--
-- Demands: when one of the journals `files` is removed, truncated to nothing or
-- begun again at its start, all writes to the main file, whose name lacks
-- `suffix`, are synced.
--
-- Why: the journal is all that can repair a main file of which a crash left a
-- part. Once it is gone, a torn main file stays torn.
--
-- Kernel: without a sync, the removal may reach the device before the data of
-- the main file do.
--
-- Instead: fsync the main file before you unlink or truncate its journal.
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
  gone AS (
    SELECT
      of!(op, (run, seq, ts_ns, path)),
      SUBSTR(op.path, 1, LENGTH(op.path) - LENGTH(:suffix)) AS main
    FROM _syncline_check_op AS op
    JOIN _syncline_check_match AS asked
      ON asked.run = op.run
      AND asked.path = op.path
      AND asked.role = 'files'
    WHERE
      op.path GLOB '*' || :suffix
      AND (op.op = 'unlink'
      OR (op.op = 'open' AND op.is_dirty = 1)
      OR (op.op IN ('truncate', 'write') AND op.offset_bytes = 0))
  ),
  state AS (
    SELECT *
    FROM sync_state!(
      (SELECT run, main AS file_id, ts_ns AS at_ns, seq FROM gone),
      (
        SELECT
          run, seq, op,
          CASE WHEN op = 'sync' THEN '' ELSE path END AS file_id,
          ts_ns, end_ns, is_sync, is_dirty, ret
        FROM _syncline_check_op
      ),
      (seq)
    )
  )
SELECT
  CASE state.is_synced WHEN 1 THEN 'ok' ELSE 'violated' END AS verdict,
  'removed' AS fault,
  gone.path AS path,
  gone.seq AS seq,
  state.dirty_seq AS other_seq,
  gone.main AS folder,
  gone.run AS run
FROM gone
JOIN state ON state.seq = gone.seq;
