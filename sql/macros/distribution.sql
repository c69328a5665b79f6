-- How values are distributed: their sum, their largest one, and percentiles.
--
-- Result: a row for each group that has a value that is not null:
--   known                Number of such values.
--   sum, avg, max        Of them.
--   p50, p90, p99, p999  Percentiles, interpolated between adjacent values.
-- A percentile has three decimals, which are all that it can have for whole
-- numbers: engines interpolate with different errors behind them.
--
-- Example: SELECT * FROM distribution!(syncline_sync, syscall_ns, (run, op))
CREATE PERFETTO MACRO distribution(
  -- Table with the values.
  rows TableOrSubquery,
  -- Its column of values.
  value Expr,
  -- Other columns of it. Null is a value like any other.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  SELECT
    $groups,
    COUNT($value) AS known,
    SUM($value) AS sum,
    AVG($value) AS avg,
    MAX($value) AS max,
    ROUND(percentile($value, 50), 3) AS p50,
    ROUND(percentile($value, 90), 3) AS p90,
    ROUND(percentile($value, 99), 3) AS p99,
    ROUND(percentile($value, 99.9), 3) AS p999
  FROM $rows
  WHERE $value IS NOT NULL
  GROUP BY $groups
);

-- Engine: duckdb
-- A list of percentiles keeps the values in memory once, and not four times.
CREATE PERFETTO MACRO distribution(
  -- Table with the values.
  rows TableOrSubquery,
  -- Its column of values.
  value Expr,
  -- Other columns of it. Null is a value like any other.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  SELECT
    $groups,
    known, sum, avg, max,
    ROUND(list_extract(_percentiles, 1), 3) AS p50,
    ROUND(list_extract(_percentiles, 2), 3) AS p90,
    ROUND(list_extract(_percentiles, 3), 3) AS p99,
    ROUND(list_extract(_percentiles, 4), 3) AS p999
  FROM (
    SELECT
      $groups,
      COUNT($value) AS known,
      SUM($value) AS sum,
      AVG($value) AS avg,
      MAX($value) AS max,
      quantile_cont($value, [0.5, 0.9, 0.99, 0.999]) AS _percentiles
    FROM $rows
    WHERE $value IS NOT NULL
    GROUP BY $groups
  ) AS _known
);
