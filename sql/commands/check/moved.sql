-- The files whose folder got another name, or gave its name to another folder.
--
-- Columns: as those of `doubt`.
WITH RECURSIVE
  moved AS (
    SELECT
      step.run AS run,
      step.path AS path,
      step.to_path AS to_path,
      step.seq AS seq
    FROM _syncline_check_op AS step
    JOIN _syncline_check_folder AS folder
      ON folder.run = step.run
      AND folder.path = step.path
    WHERE step.op = 'rename'
  ),
  above(run, path, folder) AS (
    SELECT run, path, folder_of!(path)
    FROM (SELECT DISTINCT run, path FROM _syncline_check_match) AS file
    UNION
    SELECT run, path, folder_of!(folder) FROM above WHERE folder <> ''
  )
SELECT
  above.run AS run,
  above.path AS path,
  1 AS ok,
  1 AS wrong,
  'moved' AS reason,
  MIN(moved.seq) AS seq,
  COUNT(*) AS steps
FROM above
JOIN (
  SELECT run, path AS folder, seq FROM moved
  UNION ALL
  SELECT run, to_path, seq FROM moved
) AS moved
  ON moved.run = above.run
  AND moved.folder = above.folder
GROUP BY above.run, above.path;
