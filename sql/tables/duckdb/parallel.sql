-- Number of requests that were in flight at the same time as each request. The
-- columns are those of sql/tables/perfetto/parallel.sql.

CREATE OR REPLACE VIEW syncline_parallel AS
WITH
  -- An end comes before a start at the same time: a request is in flight from
  -- its start up to, but not including, its end.
  edge AS (
    SELECT run, sync_id, ts_ns AS edge_ns, 1 AS step
    FROM syncline_sync_call
    WHERE dur_ns > 0
    UNION ALL
    SELECT run, sync_id, ts_ns + dur_ns AS edge_ns, -1 AS step
    FROM syncline_sync_call
    WHERE dur_ns > 0
  ),
  flight AS (
    SELECT
      run, sync_id,
      ROW_NUMBER() OVER in_order AS position,
      SUM(step) OVER in_order AS flying,
      LEAD(edge_ns) OVER in_order - edge_ns AS gap_ns
    FROM edge
    WINDOW in_order AS (PARTITION BY run ORDER BY edge_ns, step, sync_id)
  ),
  area AS (
    SELECT
      run, sync_id, position, flying,
      -- Integrals up to this edge.
      COALESCE(SUM(flying * gap_ns) OVER past, 0) AS flown,
      COALESCE(SUM(gap_ns) FILTER (WHERE flying > 1) OVER past, 0) AS shared,
      -- Number of edges during the request, without that of its own end.
      MAX(position) OVER own - 1 - position AS seen
    FROM flight
    WINDOW
      past AS (
        PARTITION BY run
        ORDER BY position
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ),
      own AS (PARTITION BY run, sync_id)
  ),
  peak AS (
    SELECT
      run, sync_id, flown, shared, seen,
      -- At the end itself `seen` is -1, which is not a valid frame.
      MAX(flying) OVER (
        PARTITION BY run
        ORDER BY position
        ROWS BETWEEN CURRENT ROW AND GREATEST(seen, 0) FOLLOWING
      ) AS peak
    FROM area
  )
SELECT
  sync_id,
  CAST(MAX(CASE WHEN seen >= 0 THEN peak END) AS BIGINT) AS parallel_max,
  CAST(MAX(flown) - MIN(flown) AS BIGINT) AS parallel_ns,
  CAST(MAX(shared) - MIN(shared) AS BIGINT) AS overlap_ns,
  run
FROM peak
GROUP BY run, sync_id;
