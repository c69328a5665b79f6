-- Writeback: what was written because a sync asked for it, and what the kernel
-- wrote on its own.
--
-- Forced writeback makes a program wait; background writeback happens later,
-- and gathers what several writes have changed. So the same data cost fewer and
-- larger bios in the background, at the price of being at risk until then.
-- A commit is neither: a sync may have asked for it, or the timer of the
-- journal. Bios of no known file, such as metadata and direct writes, have a
-- row of their own.
--
-- Narrow: path origin bytes bios mean_bio_bytes sequential_share median_ns
--
-- Columns:
--   path              text   Path of the file; `inode N on MAJOR,MINOR` without
--                            one. Null if no file is known.
--   origin            text   sync if a sync wrote it, journal if a commit did,
--                            background if the kernel did for neither. Null if
--                            it is not known.
--   bytes             bytes  Size of the bios whose size is known.
--   share             share  bytes / bytes of all bios.
--   bios              count  Number of bios.
--   mean_bio_bytes    bytes  bytes / bios of known size.
--   sequential_share  share  Bios that begin where the bio before them (of the
--                            same file and origin) ended / all bios but the
--                            first.
--                            Null if offsets are not recorded, or with one bio.
--   syncs             count  Syncs that wrote the file. Null unless origin is
--                            sync.
--   median_ns         ns     Median time of a bio from submit to completion.
--   run               text   Name of the run, if the input holds several.
WITH
  -- Writes, each with its origin and a name for its file. A bio without a path
  -- has that of its sync.
  written AS (
    SELECT
      of!(bio, (run, bytes, dur_ns, sync_id, ts_ns, bio_id)),
      CASE
        WHEN bio.commit_id IS NULL THEN bio.origin
        ELSE 'journal'
      END AS origin,
      of!(bio, (first_offset, last_offset)),
      COALESCE(
        bio.path, sync.path,
        'inode ' || CAST(COALESCE(bio.ino, sync.ino) AS TEXT) || ' on '
        || COALESCE(CASE WHEN bio.ino IS NULL THEN sync.dev END, bio.dev)
      ) AS path
    FROM syncline_bio AS bio
    LEFT JOIN syncline_sync AS sync
      ON sync.run = bio.run
      AND sync.sync_id = bio.sync_id
    WHERE bio.direction = 'write'
  ),
  -- Each write, and where the one before it of the same file and origin ended.
  followed AS (
    SELECT
      *,
      LAG(last_offset) OVER (
        PARTITION BY run, path, origin
        ORDER BY ts_ns, bio_id
      ) AS previous_end
    FROM written
  ),
  -- Whether it began there. Writes of no known file may be of several.
  compared AS (
    SELECT
      run, path, origin, bytes, sync_id,
      CASE
        WHEN path IS NULL THEN NULL
        WHEN previous_end = first_offset THEN 1.0
        WHEN previous_end <> first_offset THEN 0.0
      END AS is_sequential
    FROM followed
  ),
  file AS (
    SELECT
      run, path, origin,
      SUM(bytes) AS bytes,
      AVG(bytes) AS mean_bytes,
      COUNT(*) AS bios,
      AVG(is_sequential) AS sequential_share,
      COUNT(DISTINCT sync_id) AS syncs
    FROM compared
    GROUP BY run, path, origin
  ),
  time AS (SELECT * FROM distribution!(written, dur_ns, (run, path, origin)))
SELECT
  file.path AS path,
  file.origin AS origin,
  CAST(file.bytes AS BIGINT) AS bytes,
  share!(file.bytes, SUM(file.bytes) OVER (PARTITION BY file.run)) AS share,
  file.bios AS bios,
  CAST(ROUND(file.mean_bytes) AS BIGINT) AS mean_bio_bytes,
  file.sequential_share AS sequential_share,
  CASE file.origin WHEN 'sync' THEN file.syncs END AS syncs,
  CAST(ROUND(time.p50, 0) AS BIGINT) AS median_ns,
  file.run AS run
FROM file
LEFT JOIN time ON time.run = file.run AND same!(time, file, (path, origin))
ORDER BY
  file.run,
  COALESCE(file.bytes, 0) DESC,
  file.path NULLS LAST,
  file.origin NULLS LAST;
