-- Area total: how many requests, and how long they took. Some have no known
-- length, so the times cover only the `known` ones, and `bytes` the `sized`.
SELECT
  COUNT(*) AS syncs,
  COUNT(dur_ns) AS known,
  SUM(dur_ns) AS time_ns,
  CAST(percentile(dur_ns, 50) AS INT) AS p50_ns,
  CAST(percentile(dur_ns, 99) AS INT) AS p99_ns,
  MAX(dur_ns) AS max_ns,
  SUM(bytes) AS bytes,
  COUNT(bytes) AS sized
FROM _syncline_plugin_area;
