-- Bio slots: bios by bin of time, device and name of the thread. A bio counts
-- in the bin in which it begins. :width is the width of a bin in ns.
SELECT
  CAST(((bio.ts_ns - span.first_ns) - (bio.ts_ns - span.first_ns) % :width)
  / :width AS BIGINT) AS bin,
  bio.dev, bio.comm,
  COUNT(*) AS bios,
  SUM(bio.bytes) AS bytes,
  COUNT(bio.queue_ns) AS queues,
  SUM(bio.queue_ns) AS queue_ns,
  COUNT(bio.device_ns) AS served,
  SUM(bio.device_ns) AS device_ns,
  MAX(bio.dur_ns) AS max_ns
FROM syncline_bio AS bio
JOIN (SELECT run, MIN(ts_ns) AS first_ns FROM syncline_bio GROUP BY run) AS span
  ON span.run = bio.run
GROUP BY 1, 2, 3
ORDER BY 1, 2 NULLS LAST, 3 NULLS LAST;
