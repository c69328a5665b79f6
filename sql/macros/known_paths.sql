-- The names of files that operations and syncs have, each with a number:
-- numbers are compared and sorted faster than texts, in a third of the memory.
--
-- Result: a row for each name, with
--   path_id  Its number.
--   run      Name of the run.
--   path     The name.
--   is_file  1 unless it needs no sync: a pipe or a socket, which is
--            `pipe:[INODE]`, memory, which is `/memfd:NAME`, and what is below
--            /dev, /proc and /sys.
--
-- Example: SELECT COUNT(*) FROM known_paths!()
CREATE PERFETTO MACRO known_paths()
RETURNS TableOrSubquery
AS
(
  SELECT
    ROW_NUMBER() OVER (ORDER BY run, path) AS path_id,
    run, path,
    CASE
      WHEN path LIKE '%:[%'
      AND path NOT LIKE '/%' THEN 0
      WHEN path LIKE '/memfd:%' THEN 0
      WHEN SUBSTR(path, 1, 5) IN ('/dev/', '/sys/') THEN 0
      WHEN SUBSTR(path, 1, 6) = '/proc/' THEN 0
      ELSE 1
    END AS is_file
  FROM (
    SELECT run, path FROM syncline_file_op WHERE path IS NOT NULL
    UNION
    SELECT run, to_path FROM syncline_file_op WHERE to_path IS NOT NULL
    UNION
    SELECT run, path FROM syncline_sync WHERE path IS NOT NULL
  ) AS _of_row
);
