-- Empty by file: who makes syncs that cause no bio, most time first. A file
-- counts with the name of a thread; `syncs` are all of its syncs.
SELECT
  COALESCE(path, what) AS path,
  comm,
  COUNT(*) FILTER (WHERE bios = 0) AS empty_syncs,
  COUNT(*) AS syncs,
  SUM(dur_ns) FILTER (WHERE bios = 0) AS empty_time_ns,
  MAX(dur_ns) FILTER (WHERE bios = 0) AS empty_max_ns
FROM syncline_sync_call
GROUP BY 1, comm
HAVING empty_syncs > 0
ORDER BY empty_time_ns DESC, 1, comm;
