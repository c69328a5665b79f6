-- Which life of a name each new name continues, one rename or link back.
SELECT * FROM renamed_names!(_syncline_check_name);
