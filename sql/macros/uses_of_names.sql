-- The names that steps on files use, and those that they take away or give.
--
-- Result: a row for each name of a step, with
--   run, seq, path  The step, and the name.
--   is_to           1 for the second name of a rename or a link.
--   is_change       1 if the step takes the name away, or gives it.
--
-- Example: SELECT path, SUM(is_change) FROM uses_of_names!(step) GROUP BY path
CREATE PERFETTO MACRO uses_of_names(
  -- The rows of file_steps.
  steps TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT
    run, seq, path,
    0 AS is_to,
    CASE
      WHEN op = 'rename'
      AND path <> to_path THEN 1
      WHEN op IN ('unlink', 'rmdir') THEN 1
      ELSE 0
    END AS is_change
  FROM $steps
  WHERE path IS NOT NULL
  UNION ALL
  SELECT run, seq, to_path, 1, 1
  FROM $steps
  WHERE op IN ('rename', 'link') AND path <> to_path
);
