-- The folder of a path: what is before its last slash.
--
-- Result: text without a slash at the end. Empty if the path has no folder, or
--   that of the root, and null if it is null.
--
-- Example: SELECT folder_of!(path), COUNT(*) FROM syncline_sync GROUP BY 1
CREATE PERFETTO MACRO folder_of(
  -- A path.
  path Expr
)
RETURNS Expr
AS
(
  -- RTRIM removes from the end what is in a set: all characters but the slash.
  RTRIM(RTRIM($path, REPLACE($path, '/', '')), '/')
);
