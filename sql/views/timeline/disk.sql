-- Disk: who used the devices, as slices named by process and control group, one
-- row for each that had bios there at the same time.
SELECT
  ts_ns AS ts,
  dur_ns AS dur,
  CASE use
    WHEN 'journal' THEN use
    WHEN 'writes' THEN COALESCE(process, 'not known')
    ELSE printf('%s of %s', use, COALESCE(process, 'not known'))
  END
  || iif(cgroup IS NULL OR cgroup = '/', '', ', ' || cgroup) AS name
FROM device_users!()
ORDER BY ts_ns, name;
