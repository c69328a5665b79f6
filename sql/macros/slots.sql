-- The slots of time that intervals touch: each is 2^23 ns long, about 8 ms.
--
-- A join by slot compares an interval only with those near to it.
--
-- Result: each once, the columns and
--   slot  Number of a slot that an interval with these columns touches.
--
-- Example: SELECT slot, COUNT(*) FROM slots!(syncline_sync, (sync_id))
--   GROUP BY slot
CREATE PERFETTO MACRO slots(
  -- Table of intervals with `ts_ns` and `dur_ns`, neither of them null.
  intervals TableOrSubquery,
  -- Columns of it.
  columns ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH RECURSIVE
    _slot AS (
      SELECT DISTINCT
        $columns,
        ts_ns >> 23 AS slot,
        (ts_ns + dur_ns) >> 23 AS _last
      FROM $intervals
      UNION
      SELECT $columns, slot + 1, _last FROM _slot WHERE slot < _last
    )
  SELECT DISTINCT $columns, slot FROM _slot
);

-- Engine: duckdb
CREATE PERFETTO MACRO slots(
  intervals TableOrSubquery,
  columns ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  SELECT DISTINCT
    $columns,
    UNNEST(RANGE(ts_ns >> 23, ((ts_ns + dur_ns) >> 23) + 1)) AS slot
  FROM $intervals
);

-- Engine: spark. It has no recursion that keeps each row once.
CREATE PERFETTO MACRO slots(
  intervals TableOrSubquery,
  columns ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  SELECT DISTINCT $columns, slot
  FROM (
    SELECT
      $columns,
      EXPLODE(SEQUENCE(ts_ns >> 23, (ts_ns + dur_ns) >> 23)) AS slot
    FROM $intervals
  ) AS _touched
);
