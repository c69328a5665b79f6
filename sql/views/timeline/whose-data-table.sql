-- Whose data, added up: the bios of each owner, most bytes first. `bytes` is
-- null if the size of one of them is not known.
WITH
  bio AS (
    SELECT
      COALESCE(sync.process, sync.comm, writers, bio.comm) AS owner,
      -- If nothing shows syncs, it is not known whose a bio is: it is then no
      -- writeback, but a write, as a read is a read.
      COALESCE(bio.origin, bio.direction) AS origin,
      bio.bytes, bio.dur_ns
    FROM syncline_bio AS bio
    LEFT JOIN syncline_sync AS sync ON sync.sync_id = bio.sync_id
  )
SELECT
  COALESCE(owner, 'not known') AS owner,
  origin,
  COUNT(*) AS bios,
  iif(COUNT(bytes) = COUNT(*), SUM(bytes), NULL) AS bytes,
  CAST(percentile(dur_ns, 50) AS INT) AS p50_ns,
  CAST(percentile(dur_ns, 99) AS INT) AS p99_ns
FROM bio
GROUP BY owner, origin
ORDER BY SUM(bytes) DESC, owner, origin;
