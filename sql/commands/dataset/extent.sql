-- Extent: how many runs, hosts and days of a dataset are read. One row.
SELECT
  COUNT(*) AS runs,
  COUNT(DISTINCT host) AS hosts,
  MIN(host) AS first_host,
  COUNT(*) - COUNT(host) AS without_host,
  COUNT(DISTINCT day) AS days,
  CAST(MIN(day) AS VARCHAR) AS first_day,
  CAST(MAX(day) AS VARCHAR) AS last_day,
  COUNT(*) - COUNT(day) AS without_day
FROM syncline_run;
