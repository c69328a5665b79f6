-- Area files: the files with the most time.
SELECT
  path,
  COUNT(*) AS syncs,
  SUM(dur_ns) AS time_ns,
  MAX(dur_ns) AS max_ns,
  COUNT(*) OVER () AS items
FROM _syncline_plugin_area
GROUP BY path
ORDER BY time_ns DESC, path
LIMIT 10;
