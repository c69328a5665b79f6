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

-- Engine: duckdb. It computes a window without an order while rows come from a
-- sort, and keeps nothing of them. Such a window does not begin again with a
-- group, so a time is counted from the begin of its group in a row of all.
CREATE PERFETTO MACRO merged(
  intervals TableOrSubquery,
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _interval AS NOT MATERIALIZED (
      SELECT $groups, ts_ns, dur_ns FROM $intervals WHERE dur_ns > 0
    ),
    _group AS MATERIALIZED (
      SELECT $groups, CAST(ROW_NUMBER() OVER () AS HUGEINT) << 64 AS _base
      FROM (SELECT DISTINCT $groups FROM _interval) AS _known
    ),
    _sorted AS (
      SELECT _base, _base + ts_ns AS _begin, _base + ts_ns + dur_ns AS _end
      FROM _interval
      JOIN _group ON same!(_group, _interval, ($groups))
      ORDER BY _begin
    ),
    _reached AS (
      SELECT
        *,
        MAX(_end) OVER (
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS _until
      FROM _sorted
    ),
    _parted AS (
      SELECT *, _begin > LAG(_until, 1, 0) OVER () AS _begins_one FROM _reached
    ),
    _numbered AS (
      SELECT
        *,
        SUM(CAST(_begins_one AS INTEGER)) OVER (
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS _island
      FROM _parted
    ),
    _merged AS (
      SELECT _base, MIN(_begin) AS _begin, MAX(_end) AS _end
      FROM _numbered
      GROUP BY _base, _island
    )
  SELECT
    of!(_group, ($groups)),
    CAST(_begin - _base AS BIGINT) AS ts_ns,
    CAST(_end - _begin AS BIGINT) AS dur_ns
  FROM _merged
  JOIN _group USING (_base)
);
