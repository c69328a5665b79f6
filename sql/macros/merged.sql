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
  SELECT $groups, MIN(ts_ns) AS ts_ns, MAX(_end_ns) - MIN(ts_ns) AS dur_ns
  FROM islands!(
    (
      SELECT $groups, ts_ns, ts_ns + dur_ns AS _end_ns
      FROM $intervals
      WHERE dur_ns > 0
    ),
    ts_ns, _end_ns,
    ($groups)
  )
  GROUP BY $groups, island
);
