-- Slowest bios: those that took longest, the longest first, and their slices.
WITH
  slowest AS (
    SELECT
      bio_id, ts_ns, dur_ns, queue_ns, device_ns, bytes, rwbs, dev, path, comm,
      tid
    FROM syncline_bio
    WHERE dur_ns > 0
    ORDER BY dur_ns DESC, bio_id
    LIMIT $most
  )
SELECT slowest.*, found.slice_id
FROM slowest
LEFT JOIN _syncline_plugin_slice AS found
  ON found.bio_id = slowest.bio_id
  AND found.is_bio
ORDER BY slowest.dur_ns DESC, slowest.bio_id;
