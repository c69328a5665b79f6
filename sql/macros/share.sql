-- A part of a whole, as a fraction of 1. It also divides what is no part, such
-- as for `depth` and `parallelism`, which may be above 1.
--
-- Result: a number. Null where the whole is 0, or where one of them is null.
--
-- Example: SELECT share!(SUM(flush_ns), SUM(dur_ns)) FROM syncline_sync
CREATE PERFETTO MACRO share(
  -- The part, in the unit of the whole.
  part Expr,
  -- The whole.
  whole Expr
)
RETURNS Expr
AS
(
  CAST($part AS DOUBLE) / NULLIF($whole, 0)
);
