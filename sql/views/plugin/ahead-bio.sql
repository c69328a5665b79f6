-- Ahead: the slice of the bio of a bystander that took the most time of a
-- request, of all its bios that were in flight meanwhile.
SELECT found.slice_id
FROM syncline_sync AS sync
JOIN syncline_bio AS bio
  ON bio.ts_ns < sync.ts_ns + sync.dur_ns
  AND bio.ts_ns + bio.dur_ns > sync.ts_ns
  AND bio.sync_id IS NOT sync.sync_id
JOIN _syncline_plugin_slice AS found
  ON found.is_bio
  AND found.bio_id = bio.bio_id
WHERE
  sync.sync_id = $sync_id
  AND bio.comm IS $comm
  AND bio.process IS $process
  AND bio.cgroup IS COALESCE($cgroup, bio.cgroup)
ORDER BY
  MIN(bio.ts_ns + bio.dur_ns, sync.ts_ns + sync.dur_ns)
  - MAX(bio.ts_ns, sync.ts_ns) DESC,
  bio.bio_id
LIMIT 1;
