-- Whose data: the bios, as slices named by size and file. `owner` is the
-- process that made the data dirty, or else the thread that submitted the bio.
SELECT
  bio.ts_ns AS ts,
  bio.dur_ns AS dur,
  printf(
    '%s %s',
    -- Three digits, or four below the next unit: %g would write 1020 as
    -- 1.02e+03.
    CASE
      WHEN bio.bytes IS NULL THEN '?'
      WHEN bio.bytes >= 1073741824 THEN printf(
        '%.2f GiB',
        bio.bytes / 1073741824.0
      )
      WHEN bio.bytes >= 1048051712 THEN printf(
        '%.0f MiB',
        bio.bytes / 1048576.0
      )
      WHEN bio.bytes >= 1048576 THEN printf('%.3g MiB', bio.bytes / 1048576.0)
      WHEN bio.bytes >= 1023488 THEN printf('%.0f KiB', bio.bytes / 1024.0)
      WHEN bio.bytes >= 1024 THEN printf('%.3g KiB', bio.bytes / 1024.0)
      ELSE printf('%d B', bio.bytes)
    END,
    COALESCE(
      bio.path, sync.path,
      iif(bio.direction = 'write', bio.rwbs, bio.direction),
      'bio'
    )
  ) AS name,
  COALESCE(sync.process, sync.comm, writers, bio.comm, 'not known') AS owner
FROM syncline_bio AS bio
LEFT JOIN syncline_sync AS sync ON sync.sync_id = bio.sync_id
WHERE bio.dur_ns IS NOT NULL
ORDER BY bio.ts_ns, bio.bio_id;
