-- Durability: what made the data of each sync that returned 0 durable.
--
-- A device with a volatile write cache keeps data only after a flush, or after
-- a write with FUA. The data of a sync are durable if each of its bios has FUA,
-- or if a flush of the same device began after the bio was complete and ended
-- before the sync did. Such a flush is one that a thread in a sync waits for,
-- or one before a bio, as those of a journal. The report says what the kernel
-- asked for: a device without a write cache needs none of it. It does not say
-- whether the device did what it was asked to do.
--
-- Verdicts, the worst first:
--   failed        One of its own bios failed, and it returned 0.
--   lost before   A write to its file had failed before, nothing has written
--                 these data again, and it returned 0. A sync reports an error
--                 once to each open file, and the next one returns 0.
--   no flush      The recording shows its bios, its waits and the bios of the
--                 journal, and no flush or FUA that covers all of its data.
--   unknown       The recording does not show enough to say so: bios, their
--                 flags, waits for flushes, or bios of the journal are missing,
--                 or a wait for a flush began before the data were complete.
--   no data       It wrote no data, and waited for no flush. Data that were
--                 written back before may be in the cache of the device.
--   flush only    It wrote no data, and waited for a flush.
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
      run,
      sync_id,
      op,
      fs,
      dev,
      ino,
      path,
      ts_ns,
      start_ns,
      COALESCE(start_ns, ts_ns) AS begin_ns,
      ts_ns + dur_ns AS end_ns,
      bytes,
      bios,
      flush_ns
    FROM syncline_sync
    WHERE
      ret = 0
      AND dur_ns IS NOT NULL
  ),
  bio AS NOT MATERIALIZED (
    SELECT
      run,
      bio_id,
      sync_id,
      dev,
      ino,
      sector,
      bytes,
      first_offset,
      last_offset,
      ts_ns,
      ts_ns + dur_ns AS end_ns,
      error,
      rwbs,
      rwbs LIKE '%WF%' AS has_fua,
      rwbs LIKE 'F%' AS has_flush
    FROM syncline_bio
  ),
  -- The flushes: before bios of a device, and those that the thread of a sync
  -- of a file system waits for.
  flush AS MATERIALIZED (
    SELECT run, 'device' AS place, dev, ts_ns AS begin_ns, end_ns
    FROM bio
    WHERE
      has_flush
      AND end_ns IS NOT NULL
    UNION ALL
    SELECT
      wait.run,
      'file system',
      sync.dev,
      wait.ts_ns,
      wait.ts_ns + wait.dur_ns
    FROM syncline_wait AS wait
    JOIN syncline_sync AS sync
      ON sync.run = wait.run
      AND sync.sync_id = wait.sync_id
    WHERE
      wait.wait = 'flush'
      AND wait.dur_ns IS NOT NULL
  ),
  -- The journal marks its bios as metadata.
  journal_seen AS (
    SELECT DISTINCT run, dev FROM bio WHERE sync_id IS NULL AND rwbs LIKE '%M%'
  ),
  -- The bios of a sync on one device. Only bios without FUA need a flush.
  written AS (
    SELECT
      run,
      sync_id,
      dev,
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
      MIN(end_ns) AS first_ns,
      MAX(CASE WHEN has_fua THEN NULL ELSE end_ns END) AS last_ns
    FROM bio
    WHERE
      sync_id IS NOT NULL
    GROUP BY
      run,
      sync_id,
      dev
  ),
  place(place) AS (VALUES ('device'), ('file system')),
  -- A flush of the device, or of the file system, may cover them. So each has
  -- two rows.
  need AS (
    SELECT
      written.*,
      own.place AS place,
      CASE own.place WHEN 'device' THEN written.dev ELSE good.dev END AS of_dev,
      good.end_ns AS end_ns
    FROM written
    JOIN good ON good.run = written.run AND good.sync_id = written.sync_id
    CROSS JOIN place AS own
  ),
  -- At the end of a sync: the latest begin of a flush that has ended, and the
  -- latest end of one. An engine keeps the rows of a window in memory. So a
  -- window is of 2^36 ns, about a minute, and begins with a row that has the
  -- latest of the minutes before.
  minute AS (
    SELECT
      run,
      place,
      dev,
      end_ns - end_ns % 68719476736 AS minute_ns,
      MAX(begin_ns) AS begin_ns,
      MAX(end_ns) AS end_ns
    FROM flush
    GROUP BY
      1,
      2,
      3,
      4
    UNION ALL
    SELECT DISTINCT
      flushed.run,
      flushed.place,
      flushed.dev,
      ended.minute_ns,
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
      run,
      place,
      dev,
      minute_ns,
      MAX(MAX(begin_ns)) OVER earlier AS begin_ns,
      MAX(MAX(end_ns)) OVER earlier AS end_ns
    FROM minute
    GROUP BY
      run,
      place,
      dev,
      minute_ns
    WINDOW
      earlier AS (
        PARTITION BY
          run,
          place,
          dev
        ORDER BY minute_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      )
  ),
  edge AS (
    SELECT
      run,
      place,
      of_dev,
      end_ns - end_ns % 68719476736 AS minute_ns,
      end_ns AS at_ns,
      CAST(NULL AS BIGINT) AS begin_ns,
      CAST(NULL AS BIGINT) AS end_ns,
      sync_id,
      dev,
      bios,
      failed,
      with_fua,
      unknown,
      first_ns,
      last_ns
    FROM need
    UNION ALL
    SELECT
      run,
      place,
      dev,
      end_ns - end_ns % 68719476736,
      end_ns,
      begin_ns,
      end_ns,
      NULL,
      NULL,
      NULL,
      NULL,
      NULL,
      NULL,
      NULL,
      NULL
    FROM flush
    UNION ALL
    SELECT
      run,
      place,
      dev,
      minute_ns,
      minute_ns - 1,
      begin_ns,
      end_ns,
      NULL,
      NULL,
      NULL,
      NULL,
      NULL,
      NULL,
      NULL,
      NULL
    FROM before
  ),
  -- What ended at the same time is included.
  flushed AS (
    SELECT
      run,
      sync_id,
      dev,
      bios,
      failed,
      with_fua,
      unknown,
      first_ns,
      last_ns,
      MAX(begin_ns) OVER in_order AS flush_begin_ns,
      MAX(end_ns) OVER in_order AS flush_end_ns
    FROM edge
    WINDOW
      in_order AS (PARTITION BY run, place, of_dev, minute_ns ORDER BY at_ns)
  ),
  on_device AS (
    SELECT
      run,
      sync_id,
      dev,
      MIN(bios) AS bios,
      MIN(failed) AS failed,
      MIN(with_fua) AS with_fua,
      MIN(unknown) AS unknown,
      MAX(
        CASE WHEN last_ns IS NULL OR flush_begin_ns >= last_ns THEN 1 ELSE 0 END
      ) AS covered,
      MAX(CASE WHEN flush_end_ns >= first_ns THEN 1 ELSE 0 END) AS partly
    FROM flushed
    WHERE
      sync_id IS NOT NULL
    GROUP BY
      run,
      sync_id,
      dev
  ),
  data AS (
    SELECT
      on_device.run AS run,
      on_device.sync_id AS sync_id,
      SUM(bios) AS bios,
      SUM(failed) AS failed,
      SUM(with_fua) AS with_fua,
      SUM(unknown) AS unknown,
      MIN(covered) AS covered,
      MAX(partly) AS partly,
      SUM(CASE WHEN journal_seen.dev IS NULL THEN 1 ELSE 0 END) AS unseen
    FROM on_device
    LEFT JOIN journal_seen
      ON journal_seen.run = on_device.run
      AND journal_seen.dev = on_device.dev
    GROUP BY
      on_device.run,
      on_device.sync_id
  ),
  -- The syncs whose thread waited for a flush, and those that waited for a
  -- commit.
  waited AS (
    SELECT
      run,
      sync_id,
      MAX(CASE WHEN wait = 'flush' THEN 1 ELSE 0 END) AS for_flush,
      MAX(CASE WHEN wait <> 'flush' THEN 1 ELSE 0 END) AS for_commit
    FROM syncline_wait
    WHERE
      sync_id IS NOT NULL
    GROUP BY
      run,
      sync_id
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
      bio.error < 0
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
    GROUP BY
      failed_write.run,
      failed_write.bio_id
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
    WHERE
      written_again.end_ns IS NULL
      OR written_again.end_ns > good.end_ns
  ),
  judged AS (
    SELECT
      good.*,
      CASE
        WHEN data.failed > 0 THEN 'failed'
        WHEN unheard.sync_id IS NOT NULL THEN 'lost before'
        WHEN good.start_ns IS NULL
        OR good.bios IS NULL
        OR data.unknown > 0 THEN 'unknown'
        WHEN good.bios = 0
        AND waited.for_flush = 1 THEN 'flush only'
        WHEN good.bios = 0 THEN 'no data'
        WHEN data.with_fua = data.bios THEN 'fua'
        WHEN data.covered = 1 THEN 'flush'
        WHEN good.flush_ns IS NULL
        OR data.partly > 0
        OR (waited.for_commit = 1 AND data.unseen > 0)
        OR data.bios IS NULL THEN 'unknown'
        ELSE 'no flush'
      END AS verdict
    FROM good
    LEFT JOIN data ON data.run = good.run AND data.sync_id = good.sync_id
    LEFT JOIN waited ON waited.run = good.run AND waited.sync_id = good.sync_id
    LEFT JOIN unheard
      ON unheard.run = good.run
      AND unheard.sync_id = good.sync_id
  )
SELECT
  verdict,
  op,
  fs,
  dev,
  COUNT(*) AS syncs,
  COUNT(DISTINCT COALESCE(path, dev || ':' || CAST(ino AS TEXT))) AS files,
  SUM(bytes) AS bytes,
  MIN(ts_ns) AS first_ts_ns,
  MAX(ts_ns) AS last_ts_ns,
  MIN(sync_id) AS sync_id,
  run
FROM judged
GROUP BY
  verdict,
  op,
  fs,
  dev,
  run
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
