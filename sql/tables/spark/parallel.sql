-- Number of requests that were in flight at the same time as each request, for
-- Spark. The columns are those of sql/tables/perfetto/parallel.sql.

CREATE OR REPLACE TEMPORARY VIEW syncline_parallel AS
WITH
  -- An end comes before a start at the same time: a request is in flight from
  -- its start up to, but not including, its end.
  edge AS (
    SELECT run, sync_id, ts_ns AS edge_ns, 1 AS step
    FROM syncline_sync_call
    WHERE
      dur_ns > 0
    UNION ALL
    SELECT run, sync_id, ts_ns + dur_ns AS edge_ns, -1 AS step
    FROM syncline_sync_call
    WHERE
      dur_ns > 0
  ),
  flight AS (
    SELECT
      run,
      sync_id,
      ROW_NUMBER() OVER in_order AS position,
      SUM(step) OVER in_order AS flying,
      (LEAD(edge_ns) OVER in_order) - edge_ns AS gap_ns
    FROM edge
    WINDOW
      in_order AS (PARTITION BY run ORDER BY edge_ns, step, sync_id)
  ),
  area AS (
    SELECT
      run,
      sync_id,
      position,
      flying,
      -- Integrals up to this edge.
      COALESCE(SUM(flying * gap_ns) OVER past, 0) AS flown,
      COALESCE(SUM(gap_ns) FILTER (WHERE flying > 1) OVER past, 0) AS shared,
      -- Number of edges during the request, without that of its own end.
      (MAX(position) OVER own) - 1 - position AS seen
    FROM flight
    WINDOW
      past AS (
        PARTITION BY
          run
        ORDER BY position
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ),
      own AS (PARTITION BY run, sync_id)
  ),
  -- One row for each edge during a request. Spark has no window frame whose
  -- length differs between rows.
  during AS (
    SELECT
      run,
      sync_id,
      EXPLODE(SEQUENCE(position, position + seen)) AS position
    FROM area
    WHERE
      seen >= 0
  ),
  peak AS (
    SELECT during.run, during.sync_id, MAX(flight.flying) AS peak
    FROM during
    JOIN flight
      ON flight.run = during.run
      AND flight.position = during.position
    GROUP BY
      during.run,
      during.sync_id
  ),
  whole AS (
    SELECT
      area.run,
      area.sync_id,
      area.flown,
      area.shared,
      area.seen,
      peak.peak
    FROM area
    LEFT JOIN peak ON peak.run = area.run AND peak.sync_id = area.sync_id
  )
SELECT
  sync_id,
  CAST(MAX(CASE WHEN seen >= 0 THEN peak END) AS BIGINT) AS parallel_max,
  CAST(MAX(flown) - MIN(flown) AS BIGINT) AS parallel_ns,
  CAST(MAX(shared) - MIN(shared) AS BIGINT) AS overlap_ns,
  run
FROM whole
GROUP BY
  run,
  sync_id;
