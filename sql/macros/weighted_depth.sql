-- How many intervals are open at once, over time, and the sum of their weights.
--
-- What ends makes room for what begins at the same moment, so an interval
-- without a length is never open.
--
-- Result: a row for each time between two moments at which one begins or ends,
--   with the columns of `groups` and
--   ts_ns   Its start.
--   dur_ns  Its length, more than 0.
--   depth   How many intervals are open. 0 between two of them; there is no row
--           before the first one and after the last one.
--   weight  The sum of their weights. Null counts 0.
--   An interval whose begin or length is null does not count.
--
-- Example: SELECT run, MAX(depth)
--   FROM weighted_depth!(syncline_sync, 1, (run)) GROUP BY run
CREATE PERFETTO MACRO weighted_depth(
  -- Table of intervals with `ts_ns` and `dur_ns`.
  intervals TableOrSubquery,
  -- A whole number for each interval: a column, or an expression of columns.
  weight Expr,
  -- Columns of `intervals`. Null is a value like any other.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _step AS (
      SELECT $groups, ts_ns, 1 AS _opened, $weight AS _weight
      FROM $intervals
      WHERE dur_ns > 0
      UNION ALL
      SELECT $groups, ts_ns + dur_ns, -1, -($weight)
      FROM $intervals
      WHERE dur_ns > 0
    ),
    _swept AS (
      SELECT
        $groups,
        ts_ns,
        (LEAD(ts_ns) OVER _in_order) - ts_ns AS dur_ns,
        CAST(SUM(_opened) OVER _in_order AS BIGINT) AS depth,
        CAST(COALESCE(SUM(_weight) OVER _in_order, 0) AS BIGINT) AS weight
      FROM _step
      WINDOW
        _in_order AS (
          PARTITION BY $groups
          ORDER BY ts_ns
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
    )
  -- Several steps at one moment leave no time between them, so the last one
  -- has the sums of all.
  SELECT * FROM _swept WHERE dur_ns > 0
);

-- Engine: duckdb. It computes a window without an order while rows come from a
-- sort, and keeps nothing of them. Such a window does not begin again with a
-- group, and need not: all intervals of a group have ended with it, so the sums
-- are 0 again. A sort takes half as long by the number of the group as by
-- columns of text.
CREATE PERFETTO MACRO weighted_depth(
  intervals TableOrSubquery,
  weight Expr,
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _interval AS NOT MATERIALIZED (
      SELECT $groups, ts_ns, dur_ns, $weight AS _weight
      FROM $intervals
      WHERE dur_ns > 0
    ),
    _group AS (
      SELECT $groups, CAST(ROW_NUMBER() OVER () AS INTEGER) AS _number
      FROM _interval
      GROUP BY $groups
    ),
    _side(_sign) AS (VALUES (1), (-1)),
    _step AS (
      SELECT
        _group._number,
        CASE _sign WHEN 1 THEN ts_ns ELSE ts_ns + dur_ns END AS ts_ns,
        CAST(_sign AS TINYINT) AS _opened,
        _sign * _weight AS _weight
      FROM _interval
      JOIN _group ON same!(_group, _interval, ($groups))
      CROSS JOIN _side
    ),
    _sorted AS (SELECT * FROM _step ORDER BY _number, ts_ns),
    _swept AS (
      SELECT
        _number, ts_ns,
        (LEAD(ts_ns) OVER ()) - ts_ns AS dur_ns,
        LEAD(_number) OVER () AS _next_number,
        CAST(SUM(_opened) OVER (
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT
        ) AS depth,
        CAST(COALESCE(
          SUM(_weight) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
          0
        ) AS BIGINT) AS weight
      FROM _sorted
    )
  SELECT of!(_group, ($groups)), ts_ns, dur_ns, depth, weight
  FROM _swept
  JOIN _group ON _group._number = _swept._number
  WHERE dur_ns > 0 AND _next_number = _swept._number
);
