-- The steps with their file, whatever name it had.
--
-- Columns: those of step, and
--   file_id  id  The file: the first name of it in the recording.
--   name_id  id  The name by which the step knows it.
WITH
  known AS (
    SELECT
      step.*,
      COALESCE(renamed.file_id, name.name_id) AS file_id,
      name.name_id AS name_id
    FROM _syncline_check_step AS step
    LEFT JOIN _syncline_check_name AS name
      ON name.seq = step.seq
      AND name.is_to = 0
    LEFT JOIN _syncline_check_renamed AS renamed
      ON renamed.name_id = name.name_id
  )
SELECT
  seq, run, ts_ns, end_ns, least_ns, tid, pid, proc, comm, op, path, to_path,
  flags, created, offset_bytes, ret, stack, is_sync,
  CASE
    WHEN seq IN (SELECT seq FROM emptying_opens!(known)) THEN 1
    ELSE is_dirty
  END AS is_dirty,
  file_id, name_id
FROM known;
