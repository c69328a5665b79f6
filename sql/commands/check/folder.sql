-- The paths that are known to be folders.
--
-- Columns:
--   run   text  Name of the run.
--   path  text  The folder.
WITH RECURSIVE
  above(run, path) AS (
    SELECT DISTINCT run, folder_of!(path)
    FROM _syncline_check_life
    WHERE path GLOB '?*/*'
    UNION
    SELECT run, folder_of!(path) FROM above WHERE path GLOB '?*/*'
  )
SELECT DISTINCT run, path
FROM _syncline_check_op
WHERE
  path IS NOT NULL
  AND (op IN ('mkdir', 'rmdir') OR (op = 'open' AND flags GLOB '*O_DIRECTORY*'))
UNION
SELECT run, path FROM above;
