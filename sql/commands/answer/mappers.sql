-- Mappers: devices of a device mapper on which syncs are. It may hold bios
-- back: to encrypt them, or because dm-delay was asked to. Of the bios of
-- syncs and commits: their number, how many say when a device below got them,
-- how long they took, and how long they were inside of the mapper before that.
WITH
  mapper AS (
    SELECT DISTINCT sync.run AS run, sync.dev AS dev, name.value AS device
    FROM syncline_sync AS sync
    JOIN syncline_meta AS name
      ON name.run = sync.run
      AND name.key = 'device_name.' || sync.dev
    WHERE name.value LIKE 'dm-%'
  )
SELECT
  mapper.device AS device,
  COUNT(bio.bio_id) AS bios,
  COUNT(bio.queue_ns) AS known,
  CAST(COALESCE(SUM(bio.dur_ns), 0) AS BIGINT) AS dur_ns,
  CAST(COALESCE(SUM(bio.queue_ns), 0) AS BIGINT) AS inside_ns
FROM mapper
LEFT JOIN syncline_bio AS bio
  ON bio.run = mapper.run
  AND bio.dev = mapper.dev
  AND COALESCE(bio.commit_id, bio.sync_id) IS NOT NULL
  AND bio.direction = 'write'
  AND bio.dur_ns IS NOT NULL
GROUP BY mapper.device
ORDER BY mapper.device;
