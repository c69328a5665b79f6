-- Intervals with the number of the island to which they belong: those that
-- overlap or touch, directly or through others, are on one.
--
-- Bios of adjacent sectors are one request of the block layer, and syncs that
-- follow each other without a pause are one busy time.
--
-- Result: all columns and rows of `intervals`, and
--   island  0, 1, 2 and so on in each group, in the order of their begins. An
--           interval whose begin is null is on island 0.
--
-- Example: SELECT * FROM islands!(bio, sector, end_sector, (run, issue_ns))
CREATE PERFETTO MACRO islands(
  -- Table of intervals.
  intervals TableOrSubquery,
  -- Begin of an interval: a column, or an expression of columns.
  begin Expr,
  -- Its end, likewise.
  end Expr,
  -- Columns of `intervals`. Null is a value like any other.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _after AS (
      SELECT
        *,
        CASE
          WHEN $begin
          > MAX($end) OVER (
            PARTITION BY $groups
            ORDER BY $begin, $end
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
          ) THEN 1
          ELSE 0
        END AS _is_apart
      FROM $intervals
    )
  SELECT
    *,
    SUM(_is_apart) OVER (
      PARTITION BY $groups
      ORDER BY $begin, $end
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS island
  FROM _after
);
