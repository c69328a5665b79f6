-- The name by which each step knows its file, while it is that of one file.
SELECT * FROM file_names!(_syncline_check_step);
