-- A fraction of 1 as text: 0.126 becomes "13 %".
--
-- Result: text. Null if the fraction is null.
--
-- Example: SELECT 'flush ' || percent!(share) FROM t
CREATE PERFETTO MACRO percent(
  -- A fraction of 1.
  fraction Expr
)
RETURNS Expr
AS
(
  CAST(CAST(FLOOR(($fraction) * 100 + 0.5) AS BIGINT) AS TEXT) || ' %'
);
