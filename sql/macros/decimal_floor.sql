-- The lower bound of the bucket of decimal_buckets! in which a number is.
--
-- The digits of the number give the exact bucket, while a logarithm would
-- round: the first one becomes 1, 2 or 5, and the others become 0.
--
-- Result: an integer. Null for null.
--
-- Example: SELECT decimal_floor!(syscall_ns) FROM syncline_sync
CREATE PERFETTO MACRO decimal_floor(
  -- An integer from 0 to 10^18.
  number Expr
)
RETURNS Expr
AS
(
  CASE
    WHEN $number < 1 THEN 0
    ELSE CAST(SUBSTR(
      CASE
        WHEN CAST($number AS VARCHAR) < '2' THEN '1000000000000000000'
        WHEN CAST($number AS VARCHAR) < '5' THEN '2000000000000000000'
        ELSE '5000000000000000000'
      END,
      1,
      LENGTH(CAST($number AS VARCHAR))
    ) AS BIGINT)
  END
);
