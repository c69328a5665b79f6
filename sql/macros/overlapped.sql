-- Which intervals overlap with another set of them.
--
-- Result: a row an interval of known length, with the columns of `groups`, the
-- id, and
--   has_overlap  1 if one of the others was open during the interval, or began
--                when it ended. 0 if none was.
-- What of the others has an unknown length is left out.
--
-- Example:
--   SELECT * FROM overlapped!(syncline_sync, sync_id, syncline_journal, (run))
CREATE PERFETTO MACRO overlapped(
  -- Table of intervals with `ts_ns` and `dur_ns`.
  intervals TableOrSubquery,
  -- Column of `intervals` that the result has too.
  id ColumnName,
  -- Table of the other intervals.
  others TableOrSubquery,
  -- Columns of both tables: an interval meets only others of its group.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    -- An interval overlaps if something that began before it ended was still
    -- open when it began: the latest end of all these says so. This takes one
    -- sort, where a join would compare each with each.
    _point AS (
      SELECT
        $groups,
        $id,
        ts_ns + dur_ns AS _at_ns,
        1 AS _order,
        ts_ns AS _begin_ns,
        NULL AS _end_ns
      FROM $intervals
      WHERE dur_ns IS NOT NULL
      UNION ALL
      SELECT $groups, NULL, ts_ns, 0, NULL, ts_ns + dur_ns
      FROM $others
      WHERE dur_ns IS NOT NULL
    ),
    _latest AS (
      SELECT
        *,
        MAX(_end_ns) OVER (
          PARTITION BY $groups
          ORDER BY _at_ns, _order
        ) AS _latest_ns
      FROM _point
    )
  SELECT
    $groups,
    $id,
    CASE WHEN _latest_ns > _begin_ns THEN 1 ELSE 0 END AS has_overlap
  FROM _latest
  WHERE _begin_ns IS NOT NULL
);
