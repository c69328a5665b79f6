-- The names, each with its lives: while it is that of one file.
--
-- Columns: those of name that are not of a step.
SELECT DISTINCT run, path, name_id, is_to, is_change FROM _syncline_check_name;
