-- The union of intervals: those that overlap or touch become one.
--
-- Result: rows that do not overlap in a group, with the columns of `groups` and
--   ts_ns   When the first one begins.
--   dur_ns  Until the last one ends.
-- An interval of unknown length, or of the length 0, is left out.
--
-- Example: SELECT * FROM merged!(syncline_bio, (run, dev))
CREATE PERFETTO MACRO merged(
  -- Table of intervals with `ts_ns` and `dur_ns`.
  intervals TableOrSubquery,
  -- Columns of `intervals`. Null is a value like any other.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _reached AS (
      SELECT
        $groups,
        ts_ns,
        ts_ns + dur_ns AS _end_ns,
        MAX(ts_ns + dur_ns) OVER (
          PARTITION BY $groups
          ORDER BY ts_ns
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS _reach_ns
      FROM $intervals
      WHERE dur_ns > 0
    ),
    _numbered AS (
      SELECT
        *,
        -- A gap before it begins a new one.
        SUM(CASE WHEN _reach_ns >= ts_ns THEN 0 ELSE 1 END) OVER (
          PARTITION BY $groups
          ORDER BY ts_ns
          ROWS UNBOUNDED PRECEDING
        ) AS _number
      FROM _reached
    )
  SELECT $groups, MIN(ts_ns) AS ts_ns, MAX(_end_ns) - MIN(ts_ns) AS dur_ns
  FROM _numbered
  GROUP BY $groups, _number
);
