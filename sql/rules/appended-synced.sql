-- Everything that is written to a file is synced in the end.
--
-- Demands: after the last write to each of the files a sync of it began, and
-- has returned without an error, when the program ends or gives the name away.
-- Files that are removed need no sync.
--
-- Why: data that nobody syncs are written back when the kernel finds it
-- convenient, which is half a minute later and in any order. A crash until then
-- leaves a shorter file, or blocks of zeros in it.
--
-- Kernel: write copies to page cache. Only fsync, fdatasync, sync and a write
-- to a file that was opened with O_SYNC or O_DSYNC wait for the device.
--
-- Instead: call fdatasync after each record, or after each group of records
-- that belong together.
--
-- Parameters: files, except
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
  written AS (
    SELECT
      op.run AS run,
      op.file_id AS file_id,
      MAX(op.path) AS path,
      MAX(op.seq) AS seq,
      MAX(op.proc) AS proc
    FROM _syncline_check_op AS op
    JOIN _syncline_check_match AS asked
      ON asked.run = op.run
      AND asked.path = op.path
      AND asked.role = 'files'
    LEFT JOIN (
      SELECT DISTINCT run, file_id FROM _syncline_check_op WHERE op = 'unlink'
    ) AS removed
      ON removed.run = op.run
      AND removed.file_id = op.file_id
    WHERE (op.is_dirty = 1 OR op.op = 'write') AND removed.file_id IS NULL
    GROUP BY op.run, op.file_id
  ),
  state AS (
    SELECT *
    FROM sync_state!(
      (
        SELECT run, file_id, CAST(4611686018427387904 AS BIGINT) AS at_ns, seq
        FROM written
      ),
      _syncline_check_op,
      (seq)
    )
  )
SELECT
  CASE
    WHEN state.is_synced = 1 THEN 'ok'
    WHEN ended.proc IS NULL THEN 'cannot tell'
    ELSE 'violated'
  END AS verdict,
  CASE WHEN ended.proc IS NULL THEN 'pending' ELSE 'unsynced' END AS fault,
  written.path AS path,
  COALESCE(state.dirty_seq, written.seq) AS seq,
  state.dirty_seq AS other_seq,
  CAST(NULL AS TEXT) AS folder,
  written.run AS run
FROM written
JOIN state ON state.seq = written.seq
LEFT JOIN _syncline_check_ended AS ended
  ON ended.run = written.run
  AND ended.proc = written.proc;
