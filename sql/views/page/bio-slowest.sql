-- The :bios slowest bios, from submit to completion.
SELECT
  bio.run, bio.bio_id, bio.ts_ns,
  bio.ts_ns - span.first_ns AS since_ns,
  bio.dur_ns, bio.queue_ns, bio.device_ns, bio.bytes, bio.dev, bio.rwbs,
  bio.comm, bio.tid
FROM syncline_bio AS bio
JOIN (SELECT run, MIN(ts_ns) AS first_ns FROM syncline_bio GROUP BY run) AS span
  ON span.run = bio.run
WHERE bio.dur_ns IS NOT NULL
ORDER BY bio.dur_ns DESC, bio.run, bio.bio_id
LIMIT :bios;
