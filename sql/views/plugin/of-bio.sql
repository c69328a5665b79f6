-- Of bio: a bio of no known request, by its slice.
SELECT
  bio.bio_id, bio.ts_ns, bio.dur_ns, bio.queue_ns, bio.device_ns, bio.bytes,
  bio.rwbs, bio.direction, bio.dev, bio.sector, bio.error, bio.comm, bio.tid,
  bio.process, bio.cgroup, bio.writers, bio.writers_cgroup, bio.path
FROM syncline_bio AS bio
WHERE
  bio.bio_id
  = (
    SELECT extract_arg(arg_set_id, 'debug.bio_id')
    FROM slice
    WHERE id = $slice_id AND category = 'syncline.bio'
  );
