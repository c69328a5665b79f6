-- A sync that failed is not repeated as if nothing was lost.
--
-- Demands: after a sync of one of the files has failed with an error of the
-- device, the program exits, or opens the file again to write the data again;
-- it does not go on after a second sync of the same open file that succeeds.
--
-- Why: the kernel reports such an error once, and marks the data as clean. So
-- the second sync has nothing to write, and returns 0 without the data.
--
-- Kernel: fsync reports each error of writeback once for each open file
-- (errseq_t). ext4, xfs and btrfs drop or keep the pages that failed, and none
-- of them writes these pages at the next fsync.
--
-- Instead: end the program and recover from the log, as PostgreSQL does, or
-- write the data to another file.
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
  sync AS (
    SELECT
      of!(
        op,
        (
          run, file_id, proc, seq, op, path, ts_ns, end_ns, ret, is_sync,
          is_dirty
        )
      )
    FROM _syncline_check_op AS op
    JOIN _syncline_check_match AS asked
      ON asked.run = op.run
      AND asked.path = op.path
      AND asked.role = 'files'
    WHERE
      op.is_sync = 1
      OR (op.op = 'open' AND COALESCE(op.flags, '') NOT GLOB '*O_RDONLY*')
  ),
  seen AS (
    SELECT
      *,
      CASE WHEN is_sync = 1 AND lost_data!(ret) THEN 1 ELSE 0 END AS is_failed
    FROM sync
  ),
  -- What came before each of them.
  past AS (
    SELECT
      *,
      MAX(CASE is_failed WHEN 1 THEN seq END) OVER until AS failed_seq,
      MAX(CASE op WHEN 'open' THEN seq END) OVER until AS open_seq
    FROM seen
    WINDOW
      until AS (
        PARTITION BY run, file_id
        ORDER BY seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      )
  )
SELECT
  CASE
    WHEN ret >= 0
    AND failed_seq > COALESCE(open_seq, 0) THEN 'violated'
    ELSE 'ok'
  END AS verdict,
  'retried' AS fault,
  path, seq,
  failed_seq AS other_seq,
  CAST(NULL AS TEXT) AS folder,
  run
FROM past
WHERE is_sync = 1;
