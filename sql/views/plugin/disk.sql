-- Disk: for whom each device had bios, over time. Rows without a use are the
-- time in which the device had any bio.
WITH used AS MATERIALIZED (SELECT * FROM device_users!())
SELECT *
FROM (
  SELECT place, use, process, cgroup, ts_ns, dur_ns FROM used
  UNION ALL
  SELECT place, NULL, NULL, NULL, ts_ns, dur_ns FROM merged!(used, (place))
) AS found
ORDER BY place, use, process, cgroup, ts_ns;
