-- Bio shape: the number of bios and the width of a bin, in one row. The width
-- is chosen as in request.sql.
WITH RECURSIVE
  span AS (
    SELECT
      run,
      MIN(ts_ns) AS first_ns,
      MAX(ts_ns + COALESCE(dur_ns, 0)) - MIN(ts_ns) AS length_ns
    FROM syncline_bio
    GROUP BY run
  ),
  decade AS (
    SELECT CAST(1 AS BIGINT) AS unit
    UNION ALL
    SELECT unit * 10 FROM decade WHERE unit < 100000000000000000
  ),
  width AS (
    SELECT MIN(decade.unit * factor.factor) AS width_ns
    FROM decade
    CROSS JOIN (
      SELECT 1 AS factor
      UNION ALL
      SELECT 2
      UNION ALL
      SELECT 5
    ) AS factor
    WHERE
      decade.unit * factor.factor
      > (SELECT CAST(MAX(length_ns) AS DOUBLE) / 100 FROM span)
  )
SELECT
  (SELECT COUNT(*) FROM syncline_bio) AS bios,
  (SELECT COUNT(dur_ns) FROM syncline_bio) AS timed,
  (SELECT MAX(length_ns) FROM span) AS end_ns,
  (SELECT width_ns FROM width) AS width_ns;
