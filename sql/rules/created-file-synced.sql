-- A file that is created is synced, and so is its folder.
--
-- Demands: of each of the files that a program opens with O_CREAT, and neither
-- removes nor renames later, all writes are synced when the program ends, and
-- the folder is synced after the open. An open with O_CREAT counts as a
-- creation unless the recording shows that the file was there.
--
-- Why: a sync of a file makes its data durable, while its name is data of the
-- folder. After a crash, a synced file may be gone.
--
-- Kernel: POSIX promises the name only if the folder is synced. ext4 and xfs
-- commit a new name together with the first fsync of its file; other file
-- systems need not.
--
-- Instead: fsync the file, then open its folder and fsync that.
--
-- Parameters: files, except, folder
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
  first AS (
    SELECT op.run AS run, op.name_id AS name_id, MIN(op.seq) AS seq
    FROM _syncline_check_op AS op
    JOIN _syncline_check_match AS asked
      ON asked.run = op.run
      AND asked.path = op.path
      AND asked.role = 'files'
    GROUP BY op.run, op.name_id
  ),
  lost AS (
    SELECT DISTINCT run, name_id
    FROM _syncline_check_life
    WHERE is_change = 1 AND is_to = 0
  ),
  created AS (
    SELECT
      of!(op, (run, seq, ts_ns, end_ns, proc, path, file_id)),
      folder_of!(op.path) AS parent
    FROM first
    JOIN _syncline_check_op AS op ON op.seq = first.seq
    LEFT JOIN lost ON lost.run = op.run AND lost.name_id = op.name_id
    WHERE
      op.op = 'open'
      AND op.flags GLOB '*O_CREAT*'
      AND COALESCE(op.created, 1) = 1
      AND lost.name_id IS NULL
  ),
  data AS (
    SELECT *
    FROM sync_state!(
      (
        SELECT run, file_id, CAST(4611686018427387904 AS BIGINT) AS at_ns, seq
        FROM created
      ),
      _syncline_check_op,
      (seq)
    )
  ),
  of_folder AS (
    SELECT *
    FROM synced_after!(
      (
        SELECT
          run, seq,
          CASE WHEN parent = '' THEN '/' ELSE parent END AS folder,
          COALESCE(end_ns, ts_ns) AS at_ns
        FROM created
      ),
      _syncline_check_op,
      (seq)
    )
  ),
  -- What is not synced may be synced after the end of the recording.
  either AS (
    SELECT
      run, seq, dirty_seq,
      CAST(NULL AS TEXT) AS folder,
      is_synced,
      'unsynced' AS fault
    FROM data
    UNION ALL
    SELECT
      run, seq,
      CAST(NULL AS BIGINT),
      folder,
      CASE WHEN synced_ns IS NULL THEN 0 ELSE 1 END,
      'folder'
    FROM of_folder
    WHERE :folder
  )
SELECT
  CASE
    WHEN either.is_synced = 1 THEN 'ok'
    WHEN ended.proc IS NULL THEN 'cannot tell'
    ELSE 'violated'
  END AS verdict,
  CASE WHEN ended.proc IS NULL THEN 'pending' ELSE either.fault END AS fault,
  created.path AS path,
  created.seq AS seq,
  either.dirty_seq AS other_seq,
  either.folder AS folder,
  created.run AS run
FROM created
JOIN either ON either.seq = created.seq
LEFT JOIN _syncline_check_ended AS ended
  ON ended.run = created.run
  AND ended.proc = created.proc;
