-- Queue: a counter of the bios between submit and completion, on all devices.
WITH
  edge AS (
    SELECT ts_ns AS edge_ns, 1 AS step FROM syncline_bio WHERE dur_ns > 0
    UNION ALL
    SELECT ts_ns + dur_ns, -1 FROM syncline_bio WHERE dur_ns > 0
  ),
  changed AS (SELECT edge_ns, SUM(step) AS step FROM edge GROUP BY edge_ns)
SELECT
  edge_ns AS ts,
  SUM(step) OVER (
    ORDER BY edge_ns
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS value
FROM changed;
