-- The last name of a path: what follows its last slash.
--
-- Result: text. The path if it has no slash, empty if it ends with one, and
--   null if it is null.
--
-- Example: SELECT last_name!(path) FROM syncline_sync
CREATE PERFETTO MACRO last_name(
  -- A path.
  path Expr
)
RETURNS Expr
AS
(
  -- RTRIM removes from the end what is in a set: all characters but the slash.
  SUBSTR($path, LENGTH(RTRIM($path, REPLACE($path, '/', ''))) + 1)
);
