-- The time in which intervals of one key only were open.
--
-- If the syncs of a file took no time, and all others did not change, the wall
-- time would be shorter by what this says of the file.
--
-- Result: a row for each key that ever had it, with the columns of `groups`,
-- the key, and
--   only_ns  The time in which at least one of its intervals was open, and
--            none of another key of the group.
--
-- Example: SELECT * FROM only_time!(syncline_sync, path, (run, pid))
CREATE PERFETTO MACRO only_time(
  -- Table of intervals with `ts_ns` and `dur_ns`.
  intervals TableOrSubquery,
  -- A column of `intervals`.
  key ColumnName,
  -- Columns of `intervals`. Null is a value like any other.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _open AS (
      SELECT $groups, $key, ts_ns, dur_ns FROM $intervals WHERE dur_ns > 0
    ),
    _key AS (
      SELECT
        *,
        ROW_NUMBER() OVER (PARTITION BY $groups ORDER BY $key) AS _number
      FROM (SELECT DISTINCT $groups, $key FROM _open) AS _found
    ),
    _numbered AS (
      SELECT of!(_open, ($groups, ts_ns, dur_ns)), _key._number
      FROM _open
      JOIN _key ON same!(_key, _open, ($groups, $key))
    ),
    _edge AS (
      SELECT $groups, ts_ns, 1 AS _step, _number, _number * _number AS _square
      FROM _numbered
      UNION ALL
      SELECT $groups, ts_ns + dur_ns, -1, -_number, -_number * _number
      FROM _numbered
    ),
    _state AS (
      SELECT
        $groups,
        LEAD(ts_ns) OVER _in_order - ts_ns AS _gap_ns,
        CAST(SUM(_step) OVER _in_order AS BIGINT) AS _open,
        CAST(SUM(_number) OVER _in_order AS BIGINT) AS _sum,
        CAST(SUM(_square) OVER _in_order AS BIGINT) AS _squares
      FROM _edge
      WINDOW _in_order AS (PARTITION BY $groups ORDER BY ts_ns)
    ),
    -- Only if all n open intervals have the same key, n times the sum of the
    -- squares of their numbers equals the square of the sum.
    _time AS (
      SELECT
        $groups,
        CAST(_sum / _open AS BIGINT) AS _number,
        SUM(_gap_ns) AS only_ns
      FROM _state
      WHERE _gap_ns > 0 AND _open > 0 AND _open * _squares = _sum * _sum
      GROUP BY $groups, _sum / _open
    )
  SELECT of!(_time, ($groups)), _key.$key AS $key, _time.only_ns
  FROM _time
  JOIN _key ON _key._number = _time._number AND same!(_key, _time, ($groups))
);
