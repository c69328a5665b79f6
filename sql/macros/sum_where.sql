-- The sum of a value over the rows of a group that meet a condition.
--
-- Result: a whole number. 0 if no row meets the condition. Null if rows do, but
--   the value of each of them is unknown.
--
-- Example: SELECT op, sum_where!(syscall_ns, bios = 0) FROM syncline_sync
--   GROUP BY op
CREATE PERFETTO MACRO sum_where(
  -- The value of a row, a whole number.
  value Expr,
  -- The condition. Null is not met.
  condition Expr
)
RETURNS Expr
AS
(
  CAST(CASE
    WHEN COUNT(CASE WHEN $condition THEN 1 END) = 0 THEN 0
    ELSE SUM(CASE WHEN $condition THEN $value END)
  END AS BIGINT)
);
