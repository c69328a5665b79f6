-- Users of the disks by number, with what they used them for. Those that share
-- a number have no name; `users` is how many they are.
SELECT
  number,
  COUNT(DISTINCT place) AS users,
  CASE WHEN MIN(place) = MAX(place) THEN MIN(process) END AS process,
  CASE WHEN MIN(place) = MAX(place) THEN MIN(cgroup) END AS cgroup,
  CASE WHEN MIN(place) = MAX(place) THEN MIN(what) END AS what,
  COUNT(*) AS bios,
  CAST(SUM(bytes) AS BIGINT) AS bytes,
  CAST(SUM(dur_ns) AS BIGINT) AS device_ns
FROM _page_disk
GROUP BY number
ORDER BY number;
