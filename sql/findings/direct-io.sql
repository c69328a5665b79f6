-- Direct I/O that no sync follows.
--
-- Evidence is a process whose threads submitted bios without folios of page
-- cache, outside of any sync, and that made no sync after them. Bios of
-- metadata are left out, bios with FUA, which are durable already (O_DIRECT
-- with O_DSYNC), and threads of the kernel, by their names. One row for each
-- process.
--
-- Seen: {syncs} of the processes wrote directly, and made no sync after it:
-- {where}.
--
-- Cost: not known. It is a risk, and no time: a volatile cache of the device
-- may hold the data, and the file system may not have the new size.
--
-- Inferred: that these writes are direct I/O. On a device without a volatile
-- cache they are durable; the evidence says which cache it has, where that is
-- recorded. A sync of any file counts, because the file of a direct write is
-- not recorded.
--
-- Instead: call fdatasync after the last direct write, or open the file with
-- O_DSYNC too.
--
-- Needs: bio.folios bio.tid bio.rwbs
--
-- Not checked: it needs the folios, the threads and the flags of all bios,
-- which the route dynamic-events records.
--
-- Columns:
--   sync_id   id     Null.
--   ts_ns     time   The first of these writes.
--   comm      text   Name of the thread.
--   path      text   Null.
--   cost_ns   ns     Null.
--   note      prose  The process, what it wrote, and the cache of the device:
--                    `write back` is volatile, `write through` is not.
--   from_ns   time   Null.
--   until_ns  time   Null.
--   run       text   Name of the run, if the input holds several.
WITH
  recorded AS (
    SELECT run FROM syncline_bio GROUP BY run HAVING COUNT(folios) > 0
  ),
  synced AS (
    SELECT
      run,
      COALESCE(pid, tid) AS process,
      -- Nothing follows a sync whose end is not recorded.
      MAX(COALESCE(ts_ns + dur_ns, 9223372036854775807)) AS end_ns
    FROM syncline_sync
    GROUP BY run, COALESCE(pid, tid)
  ),
  written AS (
    SELECT
      bio.run AS run,
      COALESCE(bio.pid, bio.tid) AS process,
      bio.ts_ns AS ts_ns,
      bio.comm AS comm,
      bio.bytes AS bytes,
      cache.value AS cache
    FROM syncline_bio AS bio
    JOIN recorded ON recorded.run = bio.run
    LEFT JOIN syncline_meta AS cache
      ON cache.run = bio.run
      AND cache.key = 'device_cache.' || COALESCE(bio.below, bio.dev)
    WHERE
      bio.sync_id IS NULL
      AND bio.direction = 'write'
      AND bio.folios IS NULL
      -- Metadata of a file system, which an unmount writes too, and FUA.
      -- Without flags, it may be either.
      AND bio.rwbs NOT GLOB '*M*'
      AND bio.rwbs NOT GLOB '*WF*'
      AND bio.bytes > 0
      AND bio.incomplete IS NULL
      AND bio.comm IS NOT NULL
      AND NOT is_kernel_thread!(bio.comm)
      AND bio.tid NOT IN (
        SELECT tid
        FROM syncline_journal
        WHERE kind = 'commit' AND tid IS NOT NULL
      )
  ),
  unsynced AS (
    SELECT
      written.run AS run,
      written.process AS process,
      MIN(written.comm) AS comm,
      MIN(written.ts_ns) AS ts_ns,
      COUNT(*) AS writes,
      SUM(written.bytes) AS bytes,
      CASE
        WHEN COUNT(cache) = COUNT(*)
        AND MIN(cache) = MAX(cache) THEN MIN(cache)
      END AS cache
    FROM written
    LEFT JOIN synced
      ON synced.run = written.run
      AND synced.process = written.process
    WHERE synced.end_ns IS NULL OR synced.end_ns < written.ts_ns
    GROUP BY written.run, written.process
  )
SELECT
  CAST(NULL AS BIGINT) AS sync_id,
  ts_ns, comm,
  CAST(NULL AS TEXT) AS path,
  CAST(NULL AS BIGINT) AS cost_ns,
  'process ' || CAST(process AS TEXT) || '; writes: ' || CAST(writes AS TEXT)
  || COALESCE('; bytes: ' || CAST(CAST(bytes AS BIGINT) AS TEXT), '')
  || COALESCE('; cache of the device: ' || cache, '') AS note,
  CAST(NULL AS BIGINT) AS from_ns,
  CAST(NULL AS BIGINT) AS until_ns,
  run
FROM unsynced
ORDER BY bytes DESC, run, process;
