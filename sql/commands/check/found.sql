-- What a rule found, with the verdict that the recording allows.
--
-- Columns:
--   verdict    text  ok, violated or cannot tell.
--   shown      text  The verdict as it would be without doubt.
--   fault      text  What is wrong, or why the rule itself cannot tell.
--   doubt      text  Why the recording does not allow the verdict `shown`.
--   doubt_seq  id    The first step that makes it doubtful.
WITH
  result_file AS (SELECT DISTINCT run, path FROM _syncline_check_result),
  -- A doubt about all files is one about each.
  of_file AS (
    SELECT
      file.run AS run,
      file.path AS path,
      doubt.ok, doubt.wrong, doubt.reason, doubt.seq
    FROM result_file AS file
    JOIN _syncline_check_doubt AS doubt
      ON doubt.run = file.run
      AND doubt.path = file.path
    UNION ALL
    SELECT file.run, file.path, doubt.ok, doubt.wrong, doubt.reason, doubt.seq
    FROM result_file AS file
    JOIN _syncline_check_doubt AS doubt
      ON doubt.run = file.run
      AND doubt.path IS NULL
  ),
  doubt AS (
    SELECT
      run, path,
      MAX(ok) AS ok,
      MAX(wrong) AS wrong,
      MIN(CASE ok WHEN 1 THEN reason END) AS ok_reason,
      MIN(CASE wrong WHEN 1 THEN reason END) AS wrong_reason,
      MIN(CASE ok WHEN 1 THEN seq END) AS ok_seq,
      MIN(CASE wrong WHEN 1 THEN seq END) AS wrong_seq
    FROM of_file
    GROUP BY run, path
  )
SELECT
  CASE
    WHEN found.verdict = 'ok'
    AND doubt.ok = 1 THEN 'cannot tell'
    WHEN found.verdict = 'violated'
    AND doubt.wrong = 1 THEN 'cannot tell'
    ELSE found.verdict
  END AS verdict,
  found.verdict AS shown,
  found.fault AS fault,
  CASE found.verdict
    WHEN 'ok' THEN doubt.ok_reason
    WHEN 'violated' THEN doubt.wrong_reason
  END AS doubt,
  CASE found.verdict
    WHEN 'ok' THEN doubt.ok_seq
    WHEN 'violated' THEN doubt.wrong_seq
  END AS doubt_seq,
  found.path AS path,
  found.seq AS seq,
  found.other_seq AS other_seq,
  found.folder AS folder,
  found.run AS run
FROM _syncline_check_result AS found
LEFT JOIN doubt ON doubt.run = found.run AND doubt.path = found.path;
