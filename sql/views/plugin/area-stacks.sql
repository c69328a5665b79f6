-- Area stacks: the user stacks of the requests, with each weight.
SELECT
  stack,
  COUNT(*) AS syncs,
  COALESCE(SUM(dur_ns), 0) AS time_ns,
  COALESCE(SUM(bytes), 0) AS bytes
FROM _syncline_plugin_area
GROUP BY stack
ORDER BY stack;
