-- How many intervals are open, over time.
--
-- Result: rows that follow each other in a group, from the first begin to the
-- last end, with the columns of `groups` and
--   ts_ns   When the number may change.
--   dur_ns  Until the next row.
--   depth   How many intervals are open from then on. It may be 0.
-- An interval of unknown length, or of the length 0, is never open.
--
-- Example: SELECT MAX(depth) FROM depth!(syncline_bio, (run, dev))
CREATE PERFETTO MACRO depth(
  -- Table of intervals with `ts_ns` and `dur_ns`.
  intervals TableOrSubquery,
  -- Columns of `intervals`. Null is a value like any other.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  SELECT $groups, ts_ns, dur_ns, depth
  FROM weighted_depth!($intervals, 1, ($groups))
);
