-- How much larger a value is on average where something is so, than where it is
-- not, and how sure that is.
--
-- Result: a row a group, with its columns and
--   with_rows     Number of rows where it is so.
--   without_rows  Number of rows where it is not.
--   difference    The mean with it, less the mean without. Null if one of them
--                 has no row.
--   variance      Of the difference, if the values do not depend on each other:
--                 its root is the standard error. Null likewise.
--
-- Example: SELECT op, difference, SQRT(variance)
--   FROM mean_difference!(sync, dur_ns, is_alone, (op))
CREATE PERFETTO MACRO mean_difference(
  -- Table with the values.
  rows TableOrSubquery,
  -- Its column of values.
  value ColumnName,
  -- A column of it: 1 where it is so, 0 where it is not. Null is left out.
  is_so ColumnName,
  -- Columns of `rows`. Null is a value like any other.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  SELECT
    $groups,
    with_rows, without_rows,
    _yes - _no AS difference,
    -- Errors of floating point may be below 0.
    ABS(_yes_square - _yes * _yes) / with_rows
    + ABS(_no_square - _no * _no) / without_rows AS variance
  FROM (
    SELECT
      $groups,
      COUNT(CASE WHEN $is_so = 1 THEN $value END) AS with_rows,
      COUNT(CASE WHEN $is_so = 0 THEN $value END) AS without_rows,
      AVG(CASE WHEN $is_so = 1 THEN $value END) AS _yes,
      AVG(CASE WHEN $is_so = 0 THEN $value END) AS _no,
      -- Squares of times are too large for integers.
      AVG(CASE
        WHEN $is_so = 1 THEN CAST($value AS DOUBLE) * $value
      END) AS _yes_square,
      AVG(CASE
        WHEN $is_so = 0 THEN CAST($value AS DOUBLE) * $value
      END) AS _no_square
    FROM $rows
    GROUP BY $groups
  ) AS _mean
);
