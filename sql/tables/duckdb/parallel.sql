-- Number of requests that were in flight at the same time as each request. The
-- columns are those of sql/tables/perfetto/parallel.sql.

CREATE OR REPLACE VIEW syncline_parallel AS
SELECT
  sync_id,
  CAST(MAX(peak) AS BIGINT) AS parallel_max,
  CAST(MAX(flown) - MIN(flown) AS BIGINT) AS parallel_ns,
  CAST(MAX(shared_ns) - MIN(shared_ns) AS BIGINT) AS overlap_ns,
  run
FROM flight_peaks!(flight_edges!())
GROUP BY run, sync_id;
