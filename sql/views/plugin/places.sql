-- Places: the devices that had bios, the one with the most time of bios first,
-- and when the first one began.
SELECT
  COALESCE(below, dev, '') AS place,
  MIN(ts_ns) AS ts_ns,
  SUM(dur_ns) AS time_ns
FROM syncline_bio
WHERE dur_ns > 0
GROUP BY 1
ORDER BY time_ns DESC, place;
