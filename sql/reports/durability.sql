-- Durability: what made the data of each sync that returned 0 durable.
--
-- A device with a volatile write cache keeps data only after a flush, or after
-- a write with FUA. The data of a sync are what it wrote itself, and what was
-- written of its file before it began: by sync_file_range, by other threads
-- and in the background. They are durable if each of these bios has FUA, or if
-- a flush of the same device began after the bio was complete and ended before
-- the sync did. A thread in a sync may wait for such a flush, or it comes
-- before a bio, as in the commit that a sync waits for.
--
-- The report says what the kernel asked for, and not whether the device did
-- it. A device without a write cache needs none of it.
--
-- A sync may make more durable than is seen here, because direct I/O has no
-- file in a recording, and what was written before the recording is not known.
-- sync_file_range asks for no flush and for no commit, on any file system.
-- A call may have several requests. One that had no data is left out if another
-- one of the call at the same device had some, or a flush.
--
-- Verdicts, the worst first:
--   failed        One of its own bios failed, or another request of its call
--                 at the same device, and it returned 0.
--   lost before   A write to its file had failed before, nothing has written
--                 these data again, and it returned 0. A sync reports an error
--                 once to each open file. The kernel then takes the pages for
--                 clean: they may be in page cache and are not on the device,
--                 and the next sync returns 0 without writing them.
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
-- Narrow: verdict op syncs files bytes lost_bytes sync_id
--
-- Columns:
--   verdict      text   As above.
--   op           text   Sync call. Null without a call.
--   fs           text   File system.
--   dev          text   Device of the file system.
--   syncs        count  Number of syncs that returned 0.
--   files        count  Number of their files.
--   bytes        bytes  Written back for them.
--   lost_bytes   bytes  What the device had refused of their file, and nobody
--                       had written again when they ended: at most of one sync.
--                       Null unless they are lost before, and if a size is not
--                       known.
--   first_ts_ns  time   Start of the first one.
--   last_ts_ns   time   Start of the last one.
--   sync_id      id     The first one.
--   run          text   Name of the run, if the input holds several.
WITH
  -- Requests of sync() with a bio that failed. Their `ret` in syncline_sync
  -- is null.
  unreported AS (SELECT * FROM unreported_failures!()),
  -- Requests that returned 0, or are unreported failures, and whose length is
  -- known. `call_op` is the call of which they are a part. This table and the
  -- next one are not materialized, because each reader needs other columns of
  -- them: with all columns, 700,000 bios take 0.4 GB instead of 0.2.
  successful AS NOT MATERIALIZED (
    SELECT
      sync.*,
      COALESCE(sync.op, part.op) AS call_op,
      COALESCE(sync.start_ns, sync.ts_ns) AS begin_ns,
      sync.ts_ns + sync.dur_ns AS end_ns
    FROM syncline_sync AS sync
    LEFT JOIN unreported USING (run, sync_id)
    LEFT JOIN parts_of_calls!() AS part USING (run, sync_id)
    WHERE
      (sync.ret = 0 OR unreported.call_sync_id IS NOT NULL)
      AND sync.dur_ns IS NOT NULL
  ),
  -- All bios, with what their flags say. `file_dev` and `file_ino` are the file
  -- of their sync. A bio of no sync has its own inode and the device of the
  -- disk, which is not always that of the file system.
  bio AS NOT MATERIALIZED (
    SELECT
      bio.*,
      bio.ts_ns + bio.dur_ns AS end_ns,
      -- What only flushes or reads has no data that a flush must cover.
      bio.direction NOT IN ('flush', 'read') AS has_data,
      bio.rwbs LIKE '%WF%' AS has_fua,
      bio.rwbs LIKE 'F%' AS has_flush,
      COALESCE(sync.dev, bio.dev) AS file_dev,
      COALESCE(sync.ino, bio.ino) AS file_ino
    FROM syncline_bio AS bio
    LEFT JOIN syncline_sync AS sync USING (run, sync_id)
  ),
  -- The bios with data of a file that need a flush: no error and no FUA.
  file_data AS (
    SELECT run, file_dev AS dev, file_ino AS ino, ts_ns, end_ns
    FROM bio
    WHERE
      file_ino IS NOT NULL
      AND has_data
      AND has_fua IS NOT TRUE
      AND COALESCE(error, 0) >= 0
  ),
  -- For each sync, when the data of its file that were submitted before it
  -- began were all complete, because it must make these durable.
  data_before AS (
    SELECT run, sync_id, value_ns AS end_ns
    FROM latest_until!(
      (SELECT *, begin_ns AS at_ns FROM successful),
      (SELECT *, ts_ns AS at_ns, end_ns AS value_ns FROM file_data),
      (sync_id),
      (run, dev, ino)
    )
  ),
  -- For each sync, the latest end of any data of its file that was not after
  -- its own end. What others wrote meanwhile may have been its data too.
  data_until AS (
    SELECT run, sync_id, value_ns AS end_ns
    FROM latest_until!(
      (SELECT *, end_ns AS at_ns FROM successful),
      (SELECT *, end_ns AS at_ns, end_ns AS value_ns FROM file_data),
      (sync_id),
      (run, dev, ino)
    )
  ),
  -- The first submit of data of each file whose end is not known: from then on,
  -- it cannot be said what a flush covers.
  open_data AS (
    SELECT run, dev, ino, MIN(ts_ns) AS ts_ns
    FROM file_data
    WHERE end_ns IS NULL
    GROUP BY run, dev, ino
  ),
  -- The bios of a sync on one device. Only those without FUA need a flush.
  written AS (
    SELECT
      run, sync_id, dev,
      COUNT(*) AS bios,
      COUNT(CASE WHEN error < 0 THEN 1 END) AS failed,
      COUNT(CASE WHEN has_fua THEN 1 END) AS with_fua,
      MAX(end_ns IS NULL OR rwbs IS NULL OR dev IS NULL) AS unknown,
      MAX(CASE WHEN has_fua IS NOT TRUE THEN end_ns END) AS end_ns
    FROM bio
    WHERE sync_id IS NOT NULL AND has_data
    GROUP BY run, sync_id, dev
  ),
  -- The data of a sync on each of its devices. `end_ns` is when all that it
  -- must make durable there was complete. `file_end_ns`, from data_until, is of
  -- the file, so each device has the same. latest_flush! needs `file_system`.
  data AS (
    SELECT
      of!(successful, (run, sync_id)),
      COALESCE(written.dev, successful.dev) AS dev,
      successful.dev AS file_system,
      successful.begin_ns AS begin_ns,
      successful.end_ns AS sync_end_ns,
      COALESCE(written.bios, 0) AS bios,
      written.failed AS failed,
      COALESCE(written.with_fua, 0) AS with_fua,
      written.unknown AS unknown,
      later!(written.end_ns, data_before.end_ns) AS end_ns,
      data_until.end_ns AS file_end_ns
    FROM successful
    LEFT JOIN written USING (run, sync_id)
    LEFT JOIN data_before USING (run, sync_id)
    LEFT JOIN data_until USING (run, sync_id)
  ),
  -- The devices at which the recording has bios of a journal, which marks them
  -- as metadata. Elsewhere, the flush of a commit may be missing.
  journal_seen AS (
    SELECT DISTINCT run, dev
    FROM bio
    WHERE sync_id IS NULL AND has_data AND rwbs LIKE '%M%'
  ),
  -- What flushes cover of each sync. A sync is durable if its data are on each
  -- of its devices, so MIN says that all devices agree, and MAX that one does.
  covered AS (
    SELECT
      of!(data, (run, sync_id)),
      SUM(data.bios) AS bios,
      SUM(data.failed) AS failed,
      SUM(data.with_fua) AS with_fua,
      MAX(data.unknown) AS unknown,
      MAX(data.end_ns) AS end_ns,
      MAX(data.file_end_ns) AS file_end_ns,
      -- Its data were complete only after it had ended.
      MAX(data.end_ns > data.sync_end_ns) AS outlasted,
      -- A flush covers the data, or they need none.
      MIN(
        data.end_ns IS NULL
        OR COALESCE(flushed.begin_ns >= data.end_ns, FALSE)
      ) AS by_flush,
      MIN(
        data.file_end_ns IS NULL
        OR COALESCE(flushed.begin_ns >= data.file_end_ns, FALSE)
      ) AS file_by_flush,
      -- A flush began and ended within the sync.
      MAX(flushed.begin_ns >= data.begin_ns) AS within,
      -- A flush that ended after the data, but may have begun before their end.
      MAX(flushed.end_ns >= data.end_ns) AS partly,
      -- At one of its devices, no bio of a journal is recorded.
      COUNT(*) > COUNT(journal_seen.dev) AS lacks_journal
    FROM data
    LEFT JOIN latest_flush!(data, bio) AS flushed
      ON same!(flushed, data, (run, sync_id, dev))
    LEFT JOIN journal_seen
      ON journal_seen.run = data.run
      AND journal_seen.dev = data.dev
    GROUP BY data.run, data.sync_id
  ),
  -- What the thread of a sync waited for: a flush, or metadata, which is in a
  -- commit or, without a journal, in blocks of its own.
  waited AS (
    SELECT
      run, sync_id,
      MAX(wait = 'flush') AS for_flush,
      MAX(wait <> 'flush') AS for_metadata
    FROM syncline_wait
    WHERE sync_id IS NOT NULL
    GROUP BY run, sync_id
  ),
  -- For each sync that waited for a commit with recorded bios: whether a flush
  -- of the commit ended before the sync did, and whether any of these bios may
  -- have a flush or FUA. The flush may have begun before the sync, because the
  -- transaction of the sync is in that commit.
  commit_flush AS (
    SELECT
      of!(wait, (run, sync_id)),
      MAX(
        bio.has_flush
        AND COALESCE(bio.error, 0) >= 0
        AND bio.end_ns <= successful.end_ns
      ) AS flushes,
      MAX(bio.rwbs IS NULL OR bio.has_flush OR bio.has_fua) AS may_flush
    FROM syncline_wait AS wait
    JOIN successful USING (run, sync_id)
    JOIN bio USING (run, commit_id)
    WHERE wait.wait <> 'flush'
    GROUP BY wait.run, wait.sync_id
  ),
  -- Calls and devices with a request that failed: sync() returns 0 even then.
  failed_call AS (
    SELECT run, call_sync_id, dev FROM syncline_sync WHERE ret < 0
    UNION
    SELECT run, call_sync_id, dev FROM unreported
  ),
  -- The verdict on each sync. The first rule that applies counts.
  judged AS (
    SELECT
      successful.*,
      lost_before.lost_bytes AS lost_bytes,
      CASE
        WHEN covered.failed > 0
        OR failed_call.run IS NOT NULL THEN 'failed'
        WHEN lost_before.sync_id IS NOT NULL THEN 'lost before'
        WHEN successful.start_ns IS NULL
        OR successful.bios IS NULL
        OR covered.unknown
        OR covered.bios < successful.bios
        OR open_data.ts_ns <= successful.begin_ns THEN 'unknown'
        -- What was written of the file before has to be flushed all the same.
        WHEN successful.bios > 0
        AND covered.with_fua = covered.bios
        AND covered.by_flush THEN 'fua'
        WHEN successful.bios = 0
        AND covered.end_ns IS NULL
        AND covered.file_end_ns IS NULL THEN CASE
          WHEN waited.for_flush
          OR covered.within
          OR commit_flush.flushes THEN 'flush only'
          WHEN successful.call_op = 'sync_file_range' THEN 'no data'
          -- Pseudo file systems, which sync goes over too.
          WHEN successful.call_op IN ('sync', 'syncfs')
          AND successful.dev LIKE '0,%'
          AND successful.fs <> 'btrfs' THEN 'no data'
          WHEN NOT commit_flush.may_flush THEN 'no flush'
          WHEN successful.flush_ns IS NULL
          OR waited.for_metadata THEN 'unknown'
          ELSE 'no data'
        END
        -- If it had no bio, what others wrote meanwhile may be its data.
        WHEN covered.by_flush
        AND (successful.bios > 0 OR covered.file_by_flush) THEN 'flush'
        -- A flush may cover the data, but the recording does not show it.
        WHEN covered.by_flush
        OR covered.partly
        OR (waited.for_metadata AND covered.lacks_journal)
        OR (successful.call_op IS DISTINCT FROM 'sync_file_range'
        AND (successful.flush_ns IS NULL OR covered.outlasted)) THEN 'unknown'
        ELSE 'no flush'
      END AS verdict
    FROM successful
    LEFT JOIN failed_call USING (run, call_sync_id, dev)
    LEFT JOIN covered USING (run, sync_id)
    LEFT JOIN waited USING (run, sync_id)
    LEFT JOIN commit_flush USING (run, sync_id)
    LEFT JOIN lost_before!(successful, bio) AS lost_before USING (run, sync_id)
    LEFT JOIN open_data ON same!(open_data, successful, (run, dev, ino))
  ),
  -- Each request with the op of its call. `has_more` is 1 if a request of this
  -- call at the same device has another verdict than no data.
  request AS (
    SELECT
      of!(judged, (run, sync_id, call_sync_id, fs, dev, ino, path)),
      of!(judged, (bytes, lost_bytes, ts_ns, verdict)),
      judged.call_op AS op,
      MAX(CASE WHEN verdict = 'no data' THEN 0 ELSE 1 END) OVER (
        PARTITION BY judged.run, call_sync_id, dev
      ) AS has_more
    FROM judged
  )
SELECT
  verdict, op, fs, dev,
  COUNT(DISTINCT call_sync_id) AS syncs,
  COUNT(DISTINCT COALESCE(path, dev || ':' || CAST(ino AS TEXT))) AS files,
  SUM(bytes) AS bytes,
  MAX(CASE WHEN verdict = 'lost before' THEN lost_bytes END) AS lost_bytes,
  MIN(ts_ns) AS first_ts_ns,
  MAX(ts_ns) AS last_ts_ns,
  MIN(sync_id) AS sync_id,
  run
FROM request
WHERE verdict <> 'no data' OR has_more = 0
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
  COUNT(DISTINCT call_sync_id) DESC,
  op NULLS LAST,
  fs NULLS LAST,
  dev NULLS LAST;
