-- The later one of two times. One that is null does not count.
--
-- Result: a time. Null if both are null.
--
-- Example: SELECT later!(wait.ts_ns, bio.ts_ns) AS from_ns
CREATE PERFETTO MACRO later(
  -- A time.
  one Expr,
  -- Another one.
  other Expr
)
RETURNS Expr
AS
(
  CASE WHEN $other IS NULL OR $one >= $other THEN $one ELSE $other END
);
