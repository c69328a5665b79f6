-- Durability: what made the data of each sync that returned 0 durable.
--
-- A device with a volatile write cache keeps data only after a flush, or after
-- a write with FUA. The data of a sync are what it wrote itself, and what was
-- written of its file before it began: by sync_file_range, by other threads and
-- in the background. They are durable if each of these bios has FUA, or if a
-- flush of the same device began after the bio was complete and ended before
-- the sync did. Such a flush is one that a thread in a sync waits for, or one
-- before a bio, as that of the commit that a sync waits for. The report says
-- what the kernel asked for: a device without a write cache needs none of it.
-- It does not say whether the device did what it was asked to do.
--
-- Direct I/O has no file in a recording, and what was written before the
-- recording is not known. So a sync may make more durable than is seen here.
-- sync_file_range asks for no flush and for no commit, on any file system.
--
-- Verdicts, the worst first:
--   failed        One of its own bios failed, and it returned 0.
--   lost before   A write to its file had failed before, nothing has written
--                 these data again, and it returned 0. A sync reports an error
--                 once to each open file, and the next one returns 0.
--   no flush      The recording shows its bios, its waits and the bios of the
--                 journal, and no flush or FUA that covers all of its data, or
--                 none in the commit that it waited for.
--   unknown       The recording does not show enough to say so: bios, their
--                 flags, waits for flushes, or bios of the journal are missing,
--                 a flush began before the data were complete, or what others
--                 wrote of its file meanwhile may have been its data.
--   no data       Nothing of its file was written, and it waited for no flush
--                 and no commit. Data that were written back before the
--                 recording may be in the cache of the device. A sync of a file
--                 system without a device is here too.
--   flush only    Nothing of its file was written, and a flush began and ended
--                 within it, or was that of the commit that it waited for.
--   flush         A flush covers its data.
--   fua           All its bios have FUA.
--
-- Columns:
--   verdict      text   As above.
--   op           text   Sync call. Null without a call.
--   fs           text   File system.
--   dev          text   Device of the file system.
--   syncs        count  Number of syncs that returned 0.
--   files        count  Number of their files.
--   bytes        bytes  Written back for them.
--   first_ts_ns  time   Start of the first one.
--   last_ts_ns   time   Start of the last one.
--   sync_id      id     The first one.
--   run          text   Name of the run, if the input holds several.
WITH
  good AS NOT MATERIALIZED (
    SELECT
      run, sync_id, op, fs, dev, ino, path, ts_ns, start_ns,
      COALESCE(start_ns, ts_ns) AS begin_ns,
      ts_ns + dur_ns AS end_ns,
      bytes, bios, flush_ns
    FROM syncline_sync
    WHERE ret = 0 AND dur_ns IS NOT NULL
  ),
  bio AS NOT MATERIALIZED (
    SELECT
      run, bio_id, sync_id, commit_id, dev, ino, sector, bytes, first_offset,
      last_offset, ts_ns,
      ts_ns + dur_ns AS end_ns,
      error, rwbs,
      -- A flush of its own has no data, and asks no flush for it.
      direction <> 'flush' AS has_data,
      rwbs LIKE '%WF%' AS has_fua,
      rwbs LIKE 'F%' AS has_flush
    FROM syncline_bio
  ),
  -- The flushes: before bios of a device, and those that the thread of a sync
  -- of a file system waits for.
  flush AS MATERIALIZED (
    SELECT run, 'device' AS place, dev, ts_ns AS begin_ns, end_ns
    FROM bio
    WHERE has_flush AND end_ns IS NOT NULL
    UNION ALL
    SELECT
      wait.run, 'file system', sync.dev, wait.ts_ns,
      wait.ts_ns + wait.dur_ns
    FROM syncline_wait AS wait
    JOIN syncline_sync AS sync
      ON sync.run = wait.run
      AND sync.sync_id = wait.sync_id
    WHERE wait.wait = 'flush' AND wait.dur_ns IS NOT NULL
  ),
  -- Bios of files without an error, with the device of the file system where
  -- it is known. Background bios have that of the disk.
  file_bio AS NOT MATERIALIZED (
    SELECT
      bio.run AS run,
      COALESCE(sync.dev, bio.dev) AS dev,
      COALESCE(sync.ino, bio.ino) AS ino,
      bio.ts_ns AS ts_ns,
      bio.end_ns AS end_ns
    FROM bio
    LEFT JOIN syncline_sync AS sync
      ON sync.run = bio.run
      AND sync.sync_id = bio.sync_id
    WHERE
      COALESCE(sync.ino, bio.ino) IS NOT NULL
      AND bio.has_data
      AND NOT COALESCE(bio.has_fua, FALSE)
      AND COALESCE(bio.error, 0) >= 0
  ),
  -- What a sync finds of its file: bios that were submitted before it began,
  -- and those that were complete when it ended. The windows are of a minute, as
  -- those of flushes below.
  file_point AS NOT MATERIALIZED (
    SELECT
      run, dev, ino,
      ts_ns AS at_ns,
      end_ns AS reached_ns,
      CAST(NULL AS BIGINT) AS done_ns,
      CASE WHEN end_ns IS NULL THEN 1 ELSE 0 END AS endless,
      CAST(NULL AS BIGINT) AS sync_id,
      0 AS is_end
    FROM file_bio
    UNION ALL
    SELECT run, dev, ino, end_ns, NULL, end_ns, 0, NULL, 0
    FROM file_bio
    WHERE end_ns IS NOT NULL
    UNION ALL
    SELECT run, dev, ino, begin_ns, NULL, NULL, 0, sync_id, 0
    FROM good
    WHERE ino IS NOT NULL
    UNION ALL
    SELECT run, dev, ino, end_ns, NULL, NULL, 0, sync_id, 1
    FROM good
    WHERE ino IS NOT NULL
  ),
  file_point_of_minute AS NOT MATERIALIZED (
    SELECT *, at_ns - at_ns % 68719476736 AS minute_ns FROM file_point
  ),
  file_edge AS (
    SELECT * FROM file_point_of_minute
    UNION ALL
    SELECT
      run, dev, ino,
      minute_ns - 1,
      MAX(MAX(reached_ns)) OVER earlier,
      MAX(MAX(done_ns)) OVER earlier,
      COALESCE(SUM(SUM(endless)) OVER earlier, 0),
      NULL, 0, minute_ns
    FROM file_point_of_minute
    GROUP BY run, dev, ino, minute_ns
    WINDOW
      earlier AS (
        PARTITION BY run, dev, ino
        ORDER BY minute_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      )
  ),
  file_state AS (
    SELECT
      run, sync_id, is_end,
      MAX(reached_ns) OVER in_order AS reached_ns,
      MAX(done_ns) OVER in_order AS done_ns,
      SUM(endless) OVER in_order AS endless
    FROM file_edge
    WINDOW in_order AS (PARTITION BY run, dev, ino, minute_ns ORDER BY at_ns)
  ),
  found AS (
    SELECT
      run, sync_id,
      MAX(CASE is_end WHEN 0 THEN reached_ns END) AS reached_ns,
      MAX(CASE is_end WHEN 0 THEN endless END) AS endless,
      MAX(CASE is_end WHEN 1 THEN done_ns END) AS done_ns
    FROM file_state
    WHERE sync_id IS NOT NULL
    GROUP BY run, sync_id
  ),
  -- The journal marks its bios as metadata.
  journal_seen AS (
    SELECT DISTINCT run, dev FROM bio WHERE sync_id IS NULL AND rwbs LIKE '%M%'
  ),
  -- The bios of a sync on one device. Only bios without FUA need a flush.
  written AS (
    SELECT
      run, sync_id, dev,
      COUNT(*) AS bios,
      SUM(CASE WHEN error < 0 THEN 1 ELSE 0 END) AS failed,
      SUM(CASE WHEN has_fua THEN 1 ELSE 0 END) AS with_fua,
      SUM(
        CASE
          WHEN end_ns IS NULL
          OR rwbs IS NULL
          OR dev IS NULL THEN 1
          ELSE 0
        END
      ) AS unknown,
      MAX(CASE WHEN has_fua THEN NULL ELSE end_ns END) AS last_ns
    FROM bio
    WHERE sync_id IS NOT NULL AND has_data
    GROUP BY run, sync_id, dev
  ),
  place(place) AS (VALUES ('device'), ('file system')),
  -- A flush of the device, or of the file system, may cover them. So each has
  -- two rows. `last_ns` is the end of its data, and `other_ns` that of all that
  -- was written of the file until its end.
  need AS (
    SELECT
      good.run AS run,
      good.sync_id AS sync_id,
      own.place AS place,
      COALESCE(written.dev, good.dev) AS dev,
      CASE own.place
        WHEN 'device' THEN COALESCE(written.dev, good.dev)
        ELSE good.dev
      END AS of_dev,
      good.begin_ns AS sync_begin_ns,
      good.end_ns AS end_ns,
      COALESCE(written.bios, 0) AS bios,
      COALESCE(written.failed, 0) AS failed,
      COALESCE(written.with_fua, 0) AS with_fua,
      COALESCE(written.unknown, 0) AS unknown,
      CASE
        WHEN found.reached_ns IS NULL
        OR written.last_ns >= found.reached_ns THEN written.last_ns
        ELSE found.reached_ns
      END AS last_ns,
      found.done_ns AS other_ns
    FROM good
    LEFT JOIN written
      ON written.run = good.run
      AND written.sync_id = good.sync_id
    LEFT JOIN found ON found.run = good.run AND found.sync_id = good.sync_id
    CROSS JOIN place AS own
  ),
  -- At the end of a sync: the latest begin of a flush that has ended, and the
  -- latest end of one. An engine keeps the rows of a window in memory. So a
  -- window is of 2^36 ns, about a minute, and begins with a row that has the
  -- latest of the minutes before.
  minute AS (
    SELECT
      run, place, dev,
      end_ns - end_ns % 68719476736 AS minute_ns,
      MAX(begin_ns) AS begin_ns,
      MAX(end_ns) AS end_ns
    FROM flush
    GROUP BY 1, 2, 3, 4
    UNION ALL
    SELECT DISTINCT
      flushed.run, flushed.place, flushed.dev, ended.minute_ns,
      CAST(NULL AS BIGINT),
      CAST(NULL AS BIGINT)
    FROM (SELECT DISTINCT run, place, dev FROM flush) AS flushed
    JOIN (
      SELECT DISTINCT run, end_ns - end_ns % 68719476736 AS minute_ns FROM good
    ) AS ended
      ON ended.run = flushed.run
  ),
  before AS (
    SELECT
      run, place, dev, minute_ns,
      MAX(MAX(begin_ns)) OVER earlier AS begin_ns,
      MAX(MAX(end_ns)) OVER earlier AS end_ns
    FROM minute
    GROUP BY run, place, dev, minute_ns
    WINDOW
      earlier AS (
        PARTITION BY run, place, dev
        ORDER BY minute_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      )
  ),
  edge AS (
    SELECT
      run, place, of_dev,
      end_ns - end_ns % 68719476736 AS minute_ns,
      end_ns AS at_ns,
      CAST(NULL AS BIGINT) AS begin_ns,
      CAST(NULL AS BIGINT) AS end_ns,
      sync_id, dev, sync_begin_ns, bios, failed, with_fua, unknown, last_ns,
      other_ns
    FROM need
    UNION ALL
    SELECT
      run, place, dev,
      end_ns - end_ns % 68719476736,
      end_ns, begin_ns, end_ns, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
      NULL
    FROM flush
    UNION ALL
    SELECT
      run, place, dev, minute_ns,
      minute_ns - 1,
      begin_ns, end_ns, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM before
  ),
  -- What ended at the same time is included.
  flushed AS (
    SELECT
      run, sync_id, dev, sync_begin_ns,
      at_ns AS sync_end_ns,
      bios, failed, with_fua, unknown, last_ns, other_ns,
      MAX(begin_ns) OVER in_order AS flush_begin_ns,
      MAX(end_ns) OVER in_order AS flush_end_ns
    FROM edge
    WINDOW
      in_order AS (PARTITION BY run, place, of_dev, minute_ns ORDER BY at_ns)
  ),
  on_device AS (
    SELECT
      run, sync_id, dev,
      MIN(bios) AS bios,
      MIN(failed) AS failed,
      MIN(with_fua) AS with_fua,
      MIN(unknown) AS unknown,
      MAX(last_ns) AS last_ns,
      MAX(other_ns) AS other_ns,
      MAX(CASE WHEN last_ns > sync_end_ns THEN 1 ELSE 0 END) AS outlasted,
      MAX(
        CASE WHEN last_ns IS NULL OR flush_begin_ns >= last_ns THEN 1 ELSE 0 END
      ) AS covered,
      MAX(
        CASE
          WHEN other_ns IS NULL
          OR flush_begin_ns >= other_ns THEN 1
          ELSE 0
        END
      ) AS covers_others,
      MAX(CASE WHEN flush_begin_ns >= sync_begin_ns THEN 1 END) AS within,
      MAX(CASE WHEN flush_end_ns >= last_ns THEN 1 ELSE 0 END) AS partly
    FROM flushed
    WHERE sync_id IS NOT NULL
    GROUP BY run, sync_id, dev
  ),
  data AS (
    SELECT
      on_device.run AS run,
      on_device.sync_id AS sync_id,
      SUM(bios) AS bios,
      SUM(failed) AS failed,
      SUM(with_fua) AS with_fua,
      SUM(unknown) AS unknown,
      MAX(last_ns) AS last_ns,
      MAX(other_ns) AS other_ns,
      MAX(outlasted) AS outlasted,
      MIN(covered) AS covered,
      MIN(covers_others) AS covers_others,
      MAX(within) AS within,
      MAX(partly) AS partly,
      SUM(CASE WHEN journal_seen.dev IS NULL THEN 1 ELSE 0 END) AS unseen
    FROM on_device
    LEFT JOIN journal_seen
      ON journal_seen.run = on_device.run
      AND journal_seen.dev = on_device.dev
    GROUP BY on_device.run, on_device.sync_id
  ),
  -- The syncs whose thread waited for a flush, and those that waited for a
  -- commit.
  waited AS (
    SELECT
      run, sync_id,
      MAX(CASE WHEN wait = 'flush' THEN 1 ELSE 0 END) AS for_flush,
      MAX(CASE WHEN wait <> 'flush' THEN 1 ELSE 0 END) AS for_commit
    FROM syncline_wait
    WHERE sync_id IS NOT NULL
    GROUP BY run, sync_id
  ),
  -- Commits that syncs waited for whose bios are recorded, and whether one of
  -- them flushes. A flush that began before the sync counts too: the
  -- transaction of the sync is in that commit.
  committed AS (
    SELECT
      wait.run AS run,
      wait.sync_id AS sync_id,
      MAX(
        CASE WHEN bio.has_flush AND bio.end_ns <= good.end_ns THEN 1 ELSE 0 END
      ) AS flushes,
      SUM(
        CASE
          WHEN bio.rwbs IS NULL
          OR bio.has_flush
          OR bio.has_fua THEN 1
          ELSE 0
        END
      ) AS marked
    FROM syncline_wait AS wait
    JOIN good ON good.run = wait.run AND good.sync_id = wait.sync_id
    JOIN bio ON bio.run = wait.run AND bio.commit_id = wait.commit_id
    WHERE wait.wait <> 'flush'
    GROUP BY wait.run, wait.sync_id
  ),
  -- Writes of files that failed: by syncs, and in the background. These have an
  -- inode, and a device that is not always that of the file system.
  failed_write AS MATERIALIZED (
    SELECT
      bio.*,
      COALESCE(sync.ino, bio.ino) AS of_ino,
      COALESCE(sync.dev, bio.dev) AS of_dev
    FROM bio
    LEFT JOIN syncline_sync AS sync
      ON sync.run = bio.run
      AND sync.sync_id = bio.sync_id
    WHERE
      bio.has_data
      AND bio.error < 0
      AND bio.end_ns IS NOT NULL
      AND COALESCE(sync.ino, bio.ino) IS NOT NULL
  ),
  -- When the same data were written without an error: at the same sectors of
  -- the device, or at the same place of the file.
  written_again AS (
    SELECT
      failed_write.run AS run,
      failed_write.bio_id AS bio_id,
      MIN(bio.end_ns) AS end_ns
    FROM failed_write
    JOIN bio
      ON bio.run = failed_write.run
      AND bio.ts_ns >= failed_write.end_ns
      AND bio.error = 0
      AND bio.dev = failed_write.dev
    LEFT JOIN syncline_sync AS sync
      ON sync.run = bio.run
      AND sync.sync_id = bio.sync_id
    WHERE
      (bio.sector <= failed_write.sector
      AND bio.sector * 512 + bio.bytes
      >= failed_write.sector * 512 + failed_write.bytes)
      OR (COALESCE(sync.ino, bio.ino) = failed_write.of_ino
      AND bio.first_offset <= failed_write.first_offset
      AND bio.last_offset >= failed_write.last_offset)
    GROUP BY failed_write.run, failed_write.bio_id
  ),
  unheard AS (
    SELECT DISTINCT good.run AS run, good.sync_id AS sync_id
    FROM failed_write
    JOIN good
      ON good.run = failed_write.run
      AND good.ino = failed_write.of_ino
      AND good.dev = failed_write.of_dev
      AND good.begin_ns >= failed_write.end_ns
    LEFT JOIN written_again
      ON written_again.run = failed_write.run
      AND written_again.bio_id = failed_write.bio_id
    WHERE written_again.end_ns IS NULL OR written_again.end_ns > good.end_ns
  ),
  judged AS (
    SELECT
      good.*,
      CASE
        WHEN data.failed > 0 THEN 'failed'
        WHEN unheard.sync_id IS NOT NULL THEN 'lost before'
        WHEN good.start_ns IS NULL
        OR good.bios IS NULL
        OR data.unknown > 0
        OR (good.bios > 0 AND data.bios < good.bios)
        OR found.endless > 0 THEN 'unknown'
        WHEN good.bios > 0
        AND data.with_fua = data.bios
        AND data.covered = 1 THEN 'fua'
        WHEN good.bios = 0
        AND data.last_ns IS NULL
        AND data.other_ns IS NULL THEN CASE
          WHEN waited.for_flush = 1
          OR data.within = 1
          OR committed.flushes = 1 THEN 'flush only'
          WHEN good.op = 'sync_file_range' THEN 'no data'
          -- Pseudo file systems, which sync goes over too.
          WHEN good.op IN ('sync', 'syncfs')
          AND good.dev LIKE '0,%'
          AND good.fs <> 'btrfs' THEN 'no data'
          WHEN committed.marked = 0 THEN 'no flush'
          WHEN good.flush_ns IS NULL
          OR waited.for_commit = 1 THEN 'unknown'
          ELSE 'no data'
        END
        WHEN data.covered = 1
        AND (good.bios > 0 OR data.covers_others = 1) THEN 'flush'
        WHEN (good.flush_ns IS NULL
        AND NOT COALESCE(good.op = 'sync_file_range', FALSE))
        OR data.covered = 1
        OR data.partly > 0
        OR (data.outlasted = 1
        AND NOT COALESCE(good.op = 'sync_file_range', FALSE))
        OR (waited.for_commit = 1 AND data.unseen > 0)
        OR data.bios IS NULL THEN 'unknown'
        ELSE 'no flush'
      END AS verdict
    FROM good
    LEFT JOIN data ON data.run = good.run AND data.sync_id = good.sync_id
    LEFT JOIN found ON found.run = good.run AND found.sync_id = good.sync_id
    LEFT JOIN waited ON waited.run = good.run AND waited.sync_id = good.sync_id
    LEFT JOIN committed
      ON committed.run = good.run
      AND committed.sync_id = good.sync_id
    LEFT JOIN unheard
      ON unheard.run = good.run
      AND unheard.sync_id = good.sync_id
  )
SELECT
  verdict, op, fs, dev,
  COUNT(*) AS syncs,
  COUNT(DISTINCT COALESCE(path, dev || ':' || CAST(ino AS TEXT))) AS files,
  SUM(bytes) AS bytes,
  MIN(ts_ns) AS first_ts_ns,
  MAX(ts_ns) AS last_ts_ns,
  MIN(sync_id) AS sync_id,
  run
FROM judged
GROUP BY verdict, op, fs, dev, run
ORDER BY
  run,
  CASE verdict
    WHEN 'failed' THEN 1
    WHEN 'lost before' THEN 2
    WHEN 'no flush' THEN 3
    WHEN 'unknown' THEN 4
    WHEN 'no data' THEN 5
    WHEN 'flush only' THEN 6
    WHEN 'flush' THEN 7
    ELSE 8
  END,
  COUNT(*) DESC,
  op NULLS LAST,
  fs NULLS LAST,
  dev NULLS LAST;
