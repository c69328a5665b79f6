-- The order of operations on files and syncs, which step reads.
SELECT * FROM file_order!();
