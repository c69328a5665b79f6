-- The earlier one of two times. One that is null does not count.
--
-- Result: a time. Null if both are null.
--
-- Example: SELECT earlier!(bio.end_ns, sync.end_ns) AS until_ns
CREATE PERFETTO MACRO earlier(
  -- A time.
  one Expr,
  -- Another one.
  other Expr
)
RETURNS Expr
AS
(
  CASE WHEN $other IS NULL OR $one <= $other THEN $one ELSE $other END
);
