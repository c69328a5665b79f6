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
  WITH
    _open AS (SELECT $groups, ts_ns, dur_ns FROM $intervals WHERE dur_ns > 0),
    _edge AS (
      SELECT $groups, ts_ns, 1 AS _step FROM _open
      UNION ALL
      SELECT $groups, ts_ns + dur_ns, -1 FROM _open
    ),
    -- Edges at the same time are added together: only the last one has a gap.
    _state AS (
      SELECT
        $groups,
        ts_ns,
        LEAD(ts_ns) OVER _in_order - ts_ns AS dur_ns,
        CAST(SUM(_step) OVER _in_order AS BIGINT) AS depth
      FROM _edge
      WINDOW _in_order AS (PARTITION BY $groups ORDER BY ts_ns)
    )
  SELECT $groups, ts_ns, dur_ns, depth FROM _state WHERE dur_ns > 0
);
