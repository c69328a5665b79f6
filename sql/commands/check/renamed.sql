-- Which life of a name each new name continues, one rename or link back.
--
-- Columns:
--   name_id  id  The new name.
--   file_id  id  The name that the file had before.
SELECT one.name_id AS name_id, other.name_id AS file_id
FROM _syncline_check_name AS one
JOIN _syncline_check_name AS other ON other.seq = one.seq AND other.is_to = 0
WHERE one.is_to = 1;
