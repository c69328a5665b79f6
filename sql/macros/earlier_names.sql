-- The same as renamed_names, but twice as many renames back as the input: used
-- twice, four. A name that has fewer goes back as far as it can.
--
-- Result: a row for each new name, with
--   name_id  The new name.
--   file_id  A name that the file had before.
--   moved    1 if this goes further back than the input.
--
-- Example: SELECT name_id, file_id FROM earlier_names!(renamed)
CREATE PERFETTO MACRO earlier_names(
  -- The rows of renamed_names, or of this macro.
  renamed TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT
    one.name_id AS name_id,
    COALESCE(other.file_id, one.file_id) AS file_id,
    CASE WHEN other.file_id IS NULL THEN 0 ELSE 1 END AS moved
  FROM $renamed AS one
  LEFT JOIN $renamed AS other ON other.name_id = one.file_id
);
