-- The names of each file at the end, and those that it had before.
--
-- A file has lost a name if its last use of it took it away, or if another file
-- used it later.
--
-- Result: a row a file and name, with
--   run, file_id, path  The file, and the name, as the steps have them.
--   is_gone             1 if the file has lost the name, else 0.
--   place               From 1, the names that it still has first, and of these
--                       the one that was used last.
--
-- Example: SELECT run, file_id, path FROM names_of_files!(step_of_file)
--   WHERE place = 1
CREATE PERFETTO MACRO names_of_files(
  -- Steps with run, file_id, path, seq, is_to as in uses_of_names, and with
  -- is_taken, which is 1 if the step takes the name from the file.
  steps TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    -- The last use of each name by each file, as a number: larger in a later
    -- step, and for the new name of a rename. Its last digit is `is_taken`.
    _use AS (
      SELECT run, file_id, path, MAX((2 * seq + is_to) * 10 + is_taken) AS code
      FROM $steps
      GROUP BY run, file_id, path
    ),
    _state AS (
      SELECT
        *,
        CASE
          WHEN code % 10 = 1
          OR code < MAX(code) OVER (PARTITION BY run, path) THEN 1
          ELSE 0
        END AS is_gone
      FROM _use
    )
  SELECT
    run, file_id, path, is_gone,
    ROW_NUMBER() OVER (
      PARTITION BY run, file_id
      ORDER BY is_gone, code DESC
    ) AS place
  FROM _state
);
