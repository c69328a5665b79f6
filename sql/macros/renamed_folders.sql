-- Folders that were renamed although files below them are known by name.
--
-- Result: a row for each name that such a folder had before the rename, with
--   run, path  The name.
--
-- Example: WITH place AS (SELECT * FROM file_order!()),
--   known AS (SELECT * FROM known_paths!()),
--   step AS (SELECT * FROM numbered_steps!(place, known))
--   SELECT path FROM renamed_folders!(step, known)
CREATE PERFETTO MACRO renamed_folders(
  -- The rows of numbered_steps.
  steps TableOrSubquery,
  -- The rows of known_paths, as a table or a table of WITH.
  paths TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT DISTINCT _folder.run AS run, _folder.path AS path
  FROM $steps AS _step
  JOIN $paths AS _folder ON _folder.path_id = _step.path
  JOIN (
    SELECT DISTINCT run, folder_of!(path) AS path FROM $paths WHERE is_file = 1
  ) AS _above
    ON _above.run = _folder.run
    AND _above.path = _folder.path
  WHERE _step.op = 'rename' AND _folder.path <> ''
);
