-- A file that is renamed was synced before, and its folder after.
--
-- Demands: before a rename or a link to one of the files, a sync of the file
-- that began after its last write had ended has returned without an error;
-- after it, the folder of the new name is synced before the name is given to
-- the next file, and before the program ends.
--
-- Why: a crash may otherwise leave an empty or a torn file under the name, or
-- bring the old file back.
--
-- Kernel: rename is atomic for programs that run, and says nothing about data.
-- ext4 writes the data of a file that replaces another one early
-- (auto_da_alloc), which is a heuristic and no promise. The new name is durable
-- once its folder is synced.
--
-- Instead: write a new file, fsync it, rename it, open the folder and fsync it.
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
  given AS MATERIALIZED (
    SELECT
      of!(op, (run, seq, ts_ns, end_ns, proc, to_path, file_id)),
      folder_of!(op.to_path) AS parent
    FROM _syncline_check_op AS op
    JOIN _syncline_check_match AS asked
      ON asked.run = op.run
      AND asked.path = op.to_path
      AND asked.role = 'files'
    LEFT JOIN _syncline_check_folder AS folder
      ON folder.run = op.run
      AND folder.path = op.path
    WHERE
      op.op IN ('rename', 'link')
      AND op.path <> op.to_path
      AND folder.path IS NULL
  ),
  -- Whether the recording has the begin of a file, and so all writes to it.
  begun AS (
    SELECT DISTINCT op.run AS run, op.file_id AS file_id
    FROM _syncline_check_op AS op
    JOIN given ON given.run = op.run AND given.file_id = op.file_id
    WHERE
      op.op = 'open'
      AND (op.flags GLOB '*O_CREAT*' OR op.flags GLOB '*O_TRUNC*')
      AND op.seq < given.seq
  ),
  data AS MATERIALIZED (
    SELECT *
    FROM sync_state!(
      (SELECT run, file_id, ts_ns AS at_ns, seq FROM given),
      _syncline_check_op,
      (seq)
    )
  ),
  -- A name is at risk until it is given to the next file.
  named AS (
    SELECT
      run, seq,
      CASE WHEN parent = '' THEN '/' ELSE parent END AS folder,
      COALESCE(end_ns, ts_ns) AS at_ns,
      LEAD(ts_ns) OVER (PARTITION BY run, to_path ORDER BY seq) AS next_ns
    FROM given
  ),
  of_folder AS MATERIALIZED (
    SELECT * FROM synced_after!(named, _syncline_check_op, (seq, next_ns))
  )
SELECT
  CASE
    WHEN data.is_synced = 0 THEN 'violated'
    WHEN data.dirty_seq IS NULL
    AND begun.file_id IS NULL THEN 'cannot tell'
    ELSE 'ok'
  END AS verdict,
  CASE WHEN data.is_synced = 0 THEN 'data' ELSE 'unseen' END AS fault,
  given.to_path AS path,
  given.seq AS seq,
  data.dirty_seq AS other_seq,
  CAST(NULL AS TEXT) AS folder,
  given.run AS run
FROM given
JOIN data ON data.seq = given.seq
LEFT JOIN begun ON begun.run = given.run AND begun.file_id = given.file_id
UNION ALL
SELECT
  CASE
    WHEN of_folder.synced_ns
    < COALESCE(of_folder.next_ns, of_folder.synced_ns + 1) THEN 'ok'
    WHEN of_folder.next_ns IS NULL
    AND ended.proc IS NULL THEN 'cannot tell'
    WHEN data.dirty_seq IS NULL
    AND begun.file_id IS NULL THEN 'cannot tell'
    ELSE 'violated'
  END,
  CASE
    WHEN data.dirty_seq IS NULL
    AND begun.file_id IS NULL THEN 'unseen'
    WHEN of_folder.next_ns IS NULL
    AND ended.proc IS NULL THEN 'pending'
    ELSE 'folder'
  END,
  given.to_path, given.seq,
  CAST(NULL AS BIGINT),
  of_folder.folder, given.run
FROM given
JOIN data ON data.seq = given.seq
LEFT JOIN begun ON begun.run = given.run AND begun.file_id = given.file_id
JOIN of_folder ON of_folder.seq = given.seq
LEFT JOIN _syncline_check_ended AS ended
  ON ended.run = given.run
  AND ended.proc = given.proc
WHERE :folder;
