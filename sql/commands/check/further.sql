-- The same, twice as many renames back.
SELECT * FROM earlier_names!(_syncline_check_renamed);
