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
  good AS MATERIALIZED (
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
  bio AS MATERIALIZED (
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
    SELECT run, 'device ' || dev AS place, ts_ns AS begin_ns, end_ns
    FROM bio
    WHERE
      has_flush
      AND end_ns IS NOT NULL
    UNION ALL
    SELECT
      wait.run,
      'file system ' || sync.dev,
      wait.ts_ns,
      wait.ts_ns + wait.dur_ns
    FROM syncline_wait AS wait
    JOIN syncline_sync AS sync
      ON sync.run = wait.run
      AND sync.sync_id = wait.sync_id
    WHERE
      wait.wait = 'flush'
  ),
  -- The ends of the bios of syncs.
  done AS MATERIALIZED (
    SELECT run, 'device ' || dev AS place, bio_id, end_ns
    FROM bio
    WHERE
      sync_id IS NOT NULL
      AND end_ns IS NOT NULL
    UNION ALL
    SELECT bio.run, 'file system ' || good.dev, bio.bio_id, bio.end_ns
    FROM bio
    JOIN good ON good.run = bio.run AND good.sync_id = bio.sync_id
    WHERE
      bio.end_ns IS NOT NULL
  ),
  -- From the last one to the first one: after the end of a bio, the earliest
  -- end of a flush that begins later, and of any flush that ends later.
  edge AS (
    SELECT
      run,
      place,
      begin_ns AS at_ns,
      end_ns AS whole_ns,
      NULL AS part_ns,
      NULL AS bio_id
    FROM flush
    UNION ALL
    SELECT run, place, end_ns, NULL, end_ns, NULL FROM flush
    UNION ALL
    SELECT run, place, end_ns, NULL, NULL, bio_id FROM done
  ),
  later AS (
    SELECT
      run,
      bio_id,
      MIN(whole_ns) OVER (
        PARTITION BY
          run,
          place
        ORDER BY at_ns DESC, CASE WHEN bio_id IS NULL THEN 0 ELSE 1 END
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS whole_ns,
      MIN(part_ns) OVER (
        PARTITION BY
          run,
          place
        ORDER BY at_ns DESC, CASE WHEN bio_id IS NULL THEN 0 ELSE 1 END
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS part_ns
    FROM edge
  ),
  next_flush AS (
    SELECT run, bio_id, MIN(whole_ns) AS whole_ns, MIN(part_ns) AS part_ns
    FROM later
    WHERE
      bio_id IS NOT NULL
    GROUP BY
      run,
      bio_id
  ),
  -- The syncs whose thread waited for a flush, and those that waited for a
  -- commit.
  own_flush AS (
    SELECT DISTINCT run, sync_id FROM syncline_wait WHERE wait = 'flush'
  ),
  -- The journal marks its bios as metadata.
  journal_seen AS (
    SELECT DISTINCT run, dev FROM bio WHERE sync_id IS NULL AND rwbs LIKE '%M%'
  ),
  in_commit AS (
    SELECT DISTINCT run, sync_id FROM syncline_wait WHERE wait <> 'flush'
  ),
  data AS (
    SELECT
      good.run AS run,
      good.sync_id AS sync_id,
      COUNT(*) AS bios,
      SUM(CASE WHEN bio.error < 0 THEN 1 ELSE 0 END) AS failed,
      SUM(CASE WHEN bio.has_fua THEN 1 ELSE 0 END) AS with_fua,
      SUM(
        CASE
          WHEN bio.end_ns IS NULL
          OR bio.rwbs IS NULL
          OR bio.dev IS NULL THEN 1
          ELSE 0
        END
      ) AS unknown,
      SUM(
        CASE
          WHEN bio.has_fua
          OR next_flush.whole_ns <= good.end_ns THEN 0
          ELSE 1
        END
      ) AS uncovered,
      COUNT(CASE WHEN next_flush.part_ns <= good.end_ns THEN 1 END) AS partly,
      SUM(CASE WHEN journal_seen.dev IS NULL THEN 1 ELSE 0 END) AS unseen
    FROM good
    JOIN bio ON bio.run = good.run AND bio.sync_id = good.sync_id
    LEFT JOIN next_flush
      ON next_flush.run = bio.run
      AND next_flush.bio_id = bio.bio_id
    LEFT JOIN journal_seen
      ON journal_seen.run = bio.run
      AND journal_seen.dev = bio.dev
    GROUP BY
      good.run,
      good.sync_id
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
        AND own_flush.sync_id IS NOT NULL THEN 'flush only'
        WHEN good.bios = 0 THEN 'no data'
        WHEN data.with_fua = data.bios THEN 'fua'
        WHEN data.uncovered = 0 THEN 'flush'
        WHEN good.flush_ns IS NULL
        OR data.partly > 0
        OR (in_commit.sync_id IS NOT NULL AND data.unseen > 0)
        OR data.bios IS NULL THEN 'unknown'
        ELSE 'no flush'
      END AS verdict
    FROM good
    LEFT JOIN data ON data.run = good.run AND data.sync_id = good.sync_id
    LEFT JOIN own_flush
      ON own_flush.run = good.run
      AND own_flush.sync_id = good.sync_id
    LEFT JOIN in_commit
      ON in_commit.run = good.run
      AND in_commit.sync_id = good.sync_id
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
  COUNT(DISTINCT path) AS files,
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
