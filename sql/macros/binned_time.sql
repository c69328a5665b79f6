-- How much of intervals is in each bin of time.
--
-- An interval that is longer than a bin counts in each that it touches, with
-- the part that is inside. So the sum over all bins is that of the intervals.
--
-- Result: a row for each bin that a group touches, with the columns of `groups`
--   bin      Number of the bin, from 0 on. Bin 0 begins at the time 0.
--   time_ns  How much of the intervals of the group is in it.
-- What is of unknown length, or of the length 0, is left out.
--
-- Example: SELECT * FROM binned_time!(syncline_wait, 1000000000, (run))
CREATE PERFETTO MACRO binned_time(
  -- Table of intervals with `ts_ns`, of at least 0, and `dur_ns`.
  intervals TableOrSubquery,
  -- How many ns a bin is long.
  width Expr,
  -- Columns of `intervals`. Null is a value like any other.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH RECURSIVE
    _interval AS (
      SELECT
        $groups,
        ts_ns,
        ts_ns + dur_ns AS _end_ns,
        CAST((ts_ns - ts_ns % $width) / $width AS BIGINT) AS _first
      FROM $intervals
      WHERE dur_ns > 0
    ),
    _end AS (SELECT MAX(_end_ns) AS _last_ns FROM _interval),
    _bin AS (
      SELECT CAST(0 AS BIGINT) AS bin, CAST(0 AS BIGINT) AS _begin_ns
      UNION ALL
      SELECT bin + 1, _begin_ns + $width
      FROM _bin
      CROSS JOIN _end
      WHERE _begin_ns + $width < _last_ns
    ),
    _part AS (
      -- Most are in one bin, and need no join.
      SELECT $groups, _first AS bin, _end_ns - ts_ns AS _ns
      FROM _interval
      WHERE _end_ns <= (_first + 1) * $width
      UNION ALL
      SELECT
        $groups,
        bin,
        earlier!(_end_ns, _begin_ns + $width) - later!(ts_ns, _begin_ns)
      FROM _interval
      JOIN _bin ON bin >= _first AND _begin_ns < _end_ns
      WHERE _end_ns > (_first + 1) * $width
    )
  SELECT $groups, bin, CAST(SUM(_ns) AS BIGINT) AS time_ns
  FROM _part
  GROUP BY $groups, bin
);
