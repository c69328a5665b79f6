-- Use of the disks by bin of time and user: how long their bios were at a
-- device, and how many bios and bytes got there. :width is the width of a bin
-- in ns.
SELECT
  bin, number,
  CAST(SUM(time_ns) AS BIGINT) AS device_ns,
  CAST(SUM(bios) AS BIGINT) AS bios,
  CAST(SUM(bytes) AS BIGINT) AS bytes
FROM (
  SELECT bin, number, time_ns, 0 AS bios, NULL AS bytes
  FROM binned_time!(_page_disk, :width, (number))
  UNION ALL
  SELECT CAST((ts_ns - ts_ns % :width) / :width AS BIGINT), number, 0, 1, bytes
  FROM _page_disk
) AS part
GROUP BY bin, number
ORDER BY bin, number;
