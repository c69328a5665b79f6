-- Buckets whose bounds are 0, 1, 2, 5, 10, 20, 50, ..., 10^18. They are half
-- open: `lower` belongs to the bucket, `upper` to the next one.
--
-- Result: a row a bucket, with `lower` and `upper`.
--
-- Example: SELECT MIN(upper) FROM decimal_buckets!() WHERE upper > 70
CREATE PERFETTO MACRO decimal_buckets()
RETURNS TableOrSubquery
AS
(
  WITH RECURSIVE
    _decade AS (
      SELECT CAST(1 AS BIGINT) AS _unit
      UNION ALL
      SELECT _unit * 10 FROM _decade WHERE _unit < 100000000000000000
    )
  SELECT CAST(0 AS BIGINT) AS lower, CAST(1 AS BIGINT) AS upper
  UNION ALL
  SELECT _unit, _unit * 2 FROM _decade
  UNION ALL
  SELECT _unit * 2, _unit * 5 FROM _decade
  UNION ALL
  SELECT _unit * 5, _unit * 10 FROM _decade
);
