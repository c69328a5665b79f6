-- The paths that are known to be folders.
--
-- Columns:
--   run   text  Name of the run.
--   path  text  The folder.
SELECT DISTINCT run, path
FROM _syncline_check_op
WHERE
  path IS NOT NULL
  AND (op IN ('mkdir', 'rmdir') OR (op = 'open' AND flags GLOB '*O_DIRECTORY*'))
UNION
SELECT DISTINCT run, folder_of!(path)
FROM _syncline_check_life
WHERE path GLOB '?*/*';
