-- The same, twice as many renames back: a name is followed to the name that it
-- continues, and that one to its own.
--
-- Columns:
--   name_id  id     The new name.
--   file_id  id     A name that the file had before.
--   moved    count  1 if it is another one than before.
SELECT
  one.name_id AS name_id,
  COALESCE(other.file_id, one.file_id) AS file_id,
  CASE WHEN other.file_id IS NULL THEN 0 ELSE 1 END AS moved
FROM _syncline_check_renamed AS one
LEFT JOIN _syncline_check_renamed AS other ON other.name_id = one.file_id;
