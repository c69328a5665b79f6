-- Disk bio: the slice of the bio that a device had at a time; of several, the
-- one that was issued last.
SELECT found.slice_id
FROM syncline_bio AS bio
JOIN _syncline_plugin_slice AS found
  ON found.is_bio
  AND found.bio_id = bio.bio_id
WHERE
  bio.ts_ns + COALESCE(bio.queue_ns, 0) <= $until_ns
  AND bio.ts_ns + bio.dur_ns >= $from_ns
  AND COALESCE(bio.below, bio.dev, '') = $dev
ORDER BY bio.ts_ns + COALESCE(bio.queue_ns, 0) DESC, bio.bio_id
LIMIT 1;
