-- Folders that were renamed although files below them are known by name.
--
-- Result: a row for each name that such a folder had, and for each that it got,
-- with
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
  WITH
    _rename AS (
      SELECT DISTINCT _old.run AS run, _old.path AS path, _new.path AS to_path
      FROM $steps AS _step
      JOIN $paths AS _old ON _old.path_id = _step.path
      JOIN $paths AS _new ON _new.path_id = _step.to_path
      WHERE _step.op = 'rename' AND _old.path <> '' AND _new.path <> ''
    ),
    _moved AS (
      SELECT run, path FROM _rename
      UNION
      SELECT run, to_path FROM _rename
    ),
    -- In the order of texts, what is below a folder follows it at once.
    _next AS (
      SELECT
        run, folder, beginning,
        MIN(CASE WHEN folder IS NULL THEN beginning END) OVER (
          PARTITION BY run
          ORDER BY beginning DESC
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS path
      FROM (
        SELECT run, path AS folder, path || '/' AS beginning FROM _moved
        UNION ALL
        SELECT run, NULL, path FROM $paths WHERE is_file = 1
      ) AS _point
    ),
    _above AS (
      SELECT run, folder AS path
      FROM _next
      WHERE SUBSTR(path, 1, LENGTH(beginning)) = beginning AND folder <> ''
    ),
    -- Files that are known only below the last of several names count as well.
    _folder AS (
      SELECT of!(_rename, (run, path, to_path))
      FROM _rename
      LEFT JOIN _above AS _old ON same!(_old, _rename, (run, path))
      LEFT JOIN _above AS _new
        ON _new.run = _rename.run
        AND _new.path = _rename.to_path
      WHERE
        _old.path IS NOT NULL
        OR (_new.path IS NOT NULL
        AND (_rename.run, _rename.path) IN (SELECT run, to_path FROM _rename))
    )
  SELECT run, path FROM _folder
  UNION
  SELECT run, to_path FROM _folder
);
