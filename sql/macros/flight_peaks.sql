-- The most syncs that are in flight at once while a sync is.
--
-- Result: all columns and rows of `edges`, and
--   peak  In the row of a start, the most that are in flight until the end of
--         its sync, itself included. Null in the row of an end.
--
-- Example: SELECT sync_id, MAX(peak) FROM flight_peaks!(flight_edges!())
--   GROUP BY sync_id
--
-- Engine: duckdb
CREATE PERFETTO MACRO flight_peaks(
  -- Table of flight_edges!.
  edges TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _edge AS (
      SELECT
        *,
        MAX(position) OVER (PARTITION BY run, sync_id) - 1 - position AS _more
      FROM $edges
    )
  SELECT
    *,
    CASE
      WHEN _more >= 0 THEN MAX(flying) OVER (
        PARTITION BY run
        ORDER BY position
        ROWS BETWEEN CURRENT ROW AND GREATEST(_more, 0) FOLLOWING
      )
    END AS peak
  FROM _edge
);

-- Engine: spark. It has no window frame whose length differs between rows, so
-- there is a row for each edge during a sync.
CREATE PERFETTO MACRO flight_peaks(
  edges TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _edge AS (
      SELECT *, MAX(position) OVER (PARTITION BY run, sync_id) - 1 AS _last
      FROM $edges
    ),
    _during AS (
      SELECT run, sync_id, EXPLODE(SEQUENCE(position, _last)) AS position
      FROM _edge
      WHERE position <= _last
    ),
    _peak AS (
      SELECT of!(_during, (run, sync_id)), MAX(_edge.flying) AS peak
      FROM _during
      JOIN _edge ON same!(_edge, _during, (run, position))
      GROUP BY _during.run, _during.sync_id
    )
  SELECT _edge.*, _peak.peak
  FROM _edge
  LEFT JOIN _peak ON same!(_peak, _edge, (run, sync_id))
);
