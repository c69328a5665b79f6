-- The files whose folder got another name, or gave its name to another folder.
--
-- Columns: as those of `doubt`.
WITH RECURSIVE
  rename AS (
    SELECT run, path, to_path, seq FROM _syncline_check_op WHERE op = 'rename'
  ),
  -- Of a folder that was renamed several times, only the last name may be known
  -- to be that of a folder.
  moved AS (
    SELECT of!(rename, (run, path, to_path, seq))
    FROM rename
    JOIN _syncline_check_folder AS folder ON same!(folder, rename, (run, path))
    UNION
    SELECT of!(rename, (run, path, to_path, seq))
    FROM rename
    JOIN _syncline_check_folder AS folder
      ON folder.run = rename.run
      AND folder.path = rename.to_path
    WHERE (rename.run, rename.path) IN (SELECT run, to_path FROM rename)
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
