-- Whether a bio of a commit wrote to the journal, and not data of a file.
--
-- The journal marks its bios as metadata. Older kernels mark none of them, but
-- the block that ends a commit is written with a flush before it, or with FUA,
-- which no data of a file are.
--
-- Result: 1 for the journal, 0 for data. Null if neither the flags nor a file
--   say what it is.
--
-- Example: SELECT commit_id, SUM(bytes * writes_journal!(bio))
--   FROM syncline_bio AS bio WHERE commit_id IS NOT NULL GROUP BY commit_id
CREATE PERFETTO MACRO writes_journal(
  -- The name of a table of bios, with `rwbs` and `ino`, in the FROM clause.
  bio Expr
)
RETURNS Expr
AS
(
  CASE
    WHEN $bio.rwbs LIKE '%M%'
    OR $bio.rwbs LIKE '%F%' THEN 1
    WHEN $bio.ino IS NOT NULL THEN 0
  END
);
