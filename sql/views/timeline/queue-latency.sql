-- Queue against latency: syncs by the number of bios that were at their device
-- when they began, in powers of two, and how long they took.
WITH
  bio AS (
    SELECT COALESCE(dev, '') AS dev, ts_ns, ts_ns + dur_ns AS end_ns
    FROM syncline_bio
    WHERE dur_ns > 0
  ),
  -- A bio ends before a sync that begins at the same time, and begins after it.
  edge AS (
    SELECT dev, ts_ns AS edge_ns, 2 AS place, 1 AS step, NULL AS dur_ns FROM bio
    UNION ALL
    SELECT dev, end_ns, 0, -1, NULL FROM bio
    UNION ALL
    SELECT COALESCE(dev, ''), ts_ns, 1, 0, dur_ns
    FROM syncline_sync
    WHERE dur_ns IS NOT NULL
  ),
  counted AS (
    SELECT
      place, dur_ns,
      SUM(step) OVER (
        PARTITION BY dev
        ORDER BY edge_ns, place
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS bios
    FROM edge
  ),
  grouped AS (
    SELECT
      CASE
        WHEN bios < 2 THEN bios
        WHEN bios < 4 THEN 2
        WHEN bios < 8 THEN 4
        WHEN bios < 16 THEN 8
        WHEN bios < 32 THEN 16
        WHEN bios < 64 THEN 32
        ELSE 64
      END AS bios_from,
      dur_ns
    FROM counted
    WHERE place = 1
  )
SELECT
  bios_from,
  COUNT(*) AS syncs,
  CAST(percentile(dur_ns, 50) AS INT) AS p50_ns,
  CAST(percentile(dur_ns, 99) AS INT) AS p99_ns,
  MAX(dur_ns) AS max_ns
FROM grouped
GROUP BY bios_from
ORDER BY bios_from;
