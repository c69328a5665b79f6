-- Which life of a name each new name continues, one rename or link back.
--
-- Result: a row for each new name, with
--   name_id  The new name.
--   file_id  The name that the file had before.
--
-- Example: SELECT name_id, file_id FROM renamed_names!(name)
CREATE PERFETTO MACRO renamed_names(
  -- The rows of file_names.
  names TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT one.name_id AS name_id, other.name_id AS file_id
  FROM $names AS one
  JOIN $names AS other ON other.seq = one.seq AND other.is_to = 0
  WHERE one.is_to = 1
);
