-- The sum of a group, as an aggregate.
--
-- Result: null if a value of the group is null, and if it has no row.
--
-- Example: SELECT path, known_sum!(bytes) FROM syncline_sync GROUP BY path
CREATE PERFETTO MACRO known_sum(
  -- What to add.
  value Expr
)
RETURNS Expr
AS
(
  CASE WHEN COUNT($value) = COUNT(*) THEN SUM($value) END
);
