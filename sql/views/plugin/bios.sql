-- Bios: those of a request, in the order of time, and their slices.
SELECT
  bio.bio_id, bio.ts_ns, bio.dur_ns, bio.queue_ns, bio.device_ns, bio.bytes,
  bio.rwbs, bio.dev, bio.sector, bio.error, bio.comm, bio.confidence,
  bio.incomplete, found.slice_id
FROM syncline_bio AS bio
LEFT JOIN _syncline_plugin_slice AS found
  ON found.sync_id = bio.sync_id
  AND found.is_bio
  AND found.bio_id = bio.bio_id
WHERE bio.sync_id = $sync_id
ORDER BY bio.ts_ns, bio.bio_id;
