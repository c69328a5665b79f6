-- Device: what each device was busy with, and for whom.
--
-- A request of the block layer is one bio, or several that were merged: bios of
-- adjacent sectors that were issued to one device at the same moment. Those
-- that the block layer reports end with their request too, so with different
-- ends they are of different requests. A request is at the device from its
-- issue to its completion; from its submit, if the issue is not recorded. A
-- write that asks for a flush before it keeps the device busy from its submit
-- on, although its request comes later. A write is sync if its flags have an S,
-- so somebody waits for it. Reads and discards use the device too, so they
-- count where the input has them. An input whose bios have no known device
-- gives no rows.
--
-- Columns:
--   dev         text   Device. One that is stacked on another has rows of its
--                      own. If the recording has remaps, its bios are at the
--                      device from their issue to the device below.
--   below       text   The devices directly below it, with a blank between
--                      them. They come from the run directory, or else from
--                      the remaps in the recording. Each has its name, or its
--                      number if the name is not known. Empty if no device is
--                      below it. Null if that is not known.
--   part        text   all: the whole device. sync, async: writes and flushes
--                      with and without the flag. read: reads. other:
--                      discards, zeroes, and what the kernel does not name.
--                      unknown: bios without known flags. thread: bios of the
--                      threads of one name.
--   comm        text   Name of the thread that submitted the bios.
--   bios        count  Number of bios whose submit and completion are recorded.
--   bytes       bytes  Sum of the sizes of those that write or read, as far as
--                      these are known.
--   requests    count  Number of requests of the block layer that they made.
--                      The other bios were merged into these.
--   flushes     count  Number of bios that asked for a flush, with data after
--                      it or without. The kernel's counter of flushes (the
--                      16th field of /sys/block/DEVICE/stat) differs: on a
--                      device without FUA it counts one more for each bio
--                      that asks for FUA, and it counts once what one flush
--                      answers for several bios.
--   fua         count  Number of bios that asked for FUA.
--   flush_ns    ns     Average length of a flush: the wait of a thread in a
--                      sync for one, or the time from the submit of a bio
--                      that asked for one before it to the first issue of the
--                      bio. Only for the whole device.
--   max_flush_ns  ns   The longest one.
--   splits      count  Number of requests by which bios were split into more
--                      than one.
--   requeues    count  How often the driver returned a request to the queue.
--   requeue_ns  ns     Sum of the times from the first issue of these requests
--                      to the last one.
--   errors      count  Number of bios that failed. Null if of none is known
--                      whether it did.
--   busy_ns     ns     Time in which at least one of them was at the device, or
--                      the device flushed before one of them.
--   busy        share  Part of the time from the first submit to the last
--                      completion of the device.
--   depth       ratio  Average number of requests at the device while at least
--                      one was there.
--   max_depth   count  The most requests that were there at once.
--   queue_ns    ns     Average time of a bio in the queue, before its issue.
--                      Those that ask for a flush before them do not count.
--   device_ns   ns     Average time of a bio at the device.
--   max_ns      ns     The longest time from submit to completion.
--   bio_id      id     That bio.
--   run         text   Name of the run, if the input holds several.
WITH
  -- Each reader takes a few of its columns, so it is not kept.
  bio AS NOT MATERIALIZED (
    SELECT
      run, dev, bio_id, sync_id, direction, comm, bytes, error, rwbs, sector,
      queue_ns, device_ns, requeues, requeue_ns, parts, dur_ns, ts_ns,
      ts_ns + COALESCE(queue_ns, 0) AS issue_ns,
      ts_ns + dur_ns AS end_ns,
      CASE
        WHEN rwbs IS NULL THEN 'unknown'
        WHEN direction = 'read' THEN 'read'
        WHEN direction NOT IN ('write', 'flush') THEN 'other'
        WHEN rwbs LIKE '%S%' THEN 'sync'
        ELSE 'async'
      END AS flag,
      -- The device flushes before it.
      (rwbs LIKE 'F%' AND direction = 'write' AND queue_ns > 0) AS has_preflush,
      -- The block layer merges bios of one direction only.
      CASE direction
        WHEN 'write' THEN 0
        WHEN 'read' THEN 1
        WHEN 'flush' THEN 2
        ELSE 3
      END AS way,
      -- What the block layer reports ends with its request. Other bios end one
      -- after the other.
      CASE WHEN bio IS NULL AND below IS NULL THEN ts_ns + dur_ns END AS done,
      -- Without an issue, nothing says that a bio was merged.
      CASE WHEN queue_ns IS NULL THEN bio_id END AS alone
    FROM syncline_bio
    WHERE dev IS NOT NULL AND dur_ns IS NOT NULL
  ),
  part(part) AS (VALUES ('all'), ('flag'), ('thread')),
  -- First of each thread and flag: these are few rows. Their numbers take less
  -- memory than their names. A number of a thread holds those of its parts, so
  -- that no join has to find them: of the flag 1 to 5, of the name 8, 16, 24
  -- and so on. None of them is empty: HAVING makes DuckDB expect fewer of them
  -- than bios, and so keep them in memory, not the bios, when it joins both.
  of_thread AS MATERIALIZED (
    SELECT
      run, dev, flag, comm,
      CAST(DENSE_RANK() OVER (ORDER BY run) AS INTEGER) AS run_id,
      CAST(DENSE_RANK() OVER (ORDER BY run, dev) AS INTEGER) AS device_id,
      CASE flag
        WHEN 'sync' THEN 1
        WHEN 'async' THEN 2
        WHEN 'read' THEN 3
        WHEN 'other' THEN 5
        ELSE 4
      END
      + CAST(8 * DENSE_RANK() OVER by_name AS INTEGER) AS thread_id,
      COUNT(*) AS bios,
      SUM(CASE WHEN flag <> 'other' THEN bytes END) AS bytes,
      SUM(CASE WHEN rwbs LIKE 'F%' THEN 1 ELSE 0 END) AS flushes,
      SUM(CASE WHEN rwbs LIKE '%WF%' THEN 1 ELSE 0 END) AS fua,
      COUNT(rwbs) AS with_flags,
      SUM(COALESCE(parts, 1) - 1) AS splits,
      SUM(CASE WHEN error < 0 THEN 1 WHEN error = 0 THEN 0 END) AS errors,
      COUNT(queue_ns) AS with_issue,
      COUNT(CASE WHEN NOT has_preflush THEN queue_ns END) AS in_queue,
      SUM(CASE WHEN NOT has_preflush THEN queue_ns END) AS queue_ns,
      COUNT(device_ns) AS at_device,
      SUM(device_ns) AS device_ns,
      MAX(dur_ns) AS max_ns,
      MIN(ts_ns) AS first_ns,
      MAX(end_ns) AS last_ns
    FROM bio
    GROUP BY run, dev, flag, comm
    HAVING COUNT(*) > 0
    WINDOW by_name AS (PARTITION BY run, dev ORDER BY comm)
  ),
  whole AS (
    SELECT run, dev, MAX(last_ns) - MIN(first_ns) AS time_ns
    FROM of_thread
    GROUP BY run, dev
  ),
  sums AS (
    SELECT
      of_thread.*,
      CASE part.part
        WHEN 'all' THEN 0
        WHEN 'flag' THEN thread_id % 8
        ELSE thread_id - thread_id % 8
      END AS part_id,
      CASE part.part WHEN 'flag' THEN flag ELSE part.part END AS of_part,
      CASE WHEN part.part = 'thread' THEN comm END AS of_comm
    FROM of_thread
    CROSS JOIN part
  ),
  amount AS MATERIALIZED (
    SELECT
      run, dev,
      of_part AS part,
      of_comm,
      MIN(device_id) AS device_id,
      MIN(part_id) AS part_id,
      SUM(bios) AS bios,
      SUM(bytes) AS bytes,
      SUM(flushes) AS flushes,
      SUM(fua) AS fua,
      SUM(with_flags) AS with_flags,
      SUM(splits) AS splits,
      SUM(with_issue) AS with_issue,
      SUM(in_queue) AS in_queue,
      SUM(errors) AS errors,
      CAST(SUM(queue_ns) AS DOUBLE) / NULLIF(SUM(in_queue), 0) AS queue_ns,
      CAST(SUM(device_ns) AS DOUBLE) / NULLIF(SUM(at_device), 0) AS device_ns,
      MAX(max_ns) AS max_ns
    FROM sums
    GROUP BY run, dev, of_part, of_comm
    HAVING COUNT(*) > 0
  ),
  longest AS (
    SELECT
      amount.run AS run,
      amount.dev AS dev,
      amount.part AS part,
      amount.of_comm AS of_comm,
      MIN(bio.bio_id) AS bio_id
    FROM bio
    JOIN amount
      ON amount.run = bio.run
      AND amount.dev = bio.dev
      AND amount.max_ns = bio.dur_ns
    WHERE
      amount.part = 'all'
      OR amount.part = bio.flag
      OR (amount.part = 'thread'
      AND amount.of_comm IS NOT DISTINCT FROM bio.comm)
    GROUP BY amount.run, amount.dev, amount.part, amount.of_comm
  ),
  -- The flushes of each device, and that of a file system, with their lengths.
  flush AS (
    SELECT
      run, dev,
      CASE
        WHEN direction = 'flush' THEN dur_ns
        ELSE queue_ns - COALESCE(requeue_ns, 0)
      END AS length_ns
    FROM bio
    WHERE
      rwbs LIKE 'F%'
      AND (direction = 'flush' OR queue_ns IS NOT NULL)
      -- That of a sync is the wait below, where waits are recorded.
      AND NOT EXISTS (
        SELECT 1
        FROM syncline_wait AS wait
        WHERE
          wait.run = bio.run
          AND wait.sync_id = bio.sync_id
          AND wait.wait = 'flush'
      )
    UNION ALL
    SELECT wait.run, sync.dev, wait.dur_ns
    FROM syncline_wait AS wait
    JOIN syncline_sync AS sync
      ON sync.run = wait.run
      AND sync.sync_id = wait.sync_id
    WHERE wait.wait = 'flush'
  ),
  flushed AS (
    SELECT
      run, dev,
      CAST(ROUND(AVG(length_ns)) AS BIGINT) AS flush_ns,
      MAX(length_ns) AS max_flush_ns
    FROM flush
    GROUP BY run, dev
  ),
  numbered AS NOT MATERIALIZED (
    SELECT
      of_thread.run_id, of_thread.device_id, of_thread.thread_id, bio.issue_ns,
      bio.way, bio.done, bio.alone, bio.sector,
      bio.sector + (bio.bytes + 511) / 512 AS end_sector,
      bio.end_ns,
      COALESCE(bio.requeues, 0) AS requeues,
      COALESCE(bio.requeue_ns, 0) AS requeue_ns
    FROM bio
    JOIN of_thread
      ON of_thread.run = bio.run
      AND of_thread.dev = bio.dev
      AND of_thread.flag = bio.flag
      AND of_thread.comm IS NOT DISTINCT FROM bio.comm
  ),
  merged AS MATERIALIZED (
    SELECT
      run_id, device_id, issue_ns, way, done, alone,
      MIN(thread_id) AS thread_id,
      MAX(thread_id) AS last_thread_id,
      -- What one request covers has no gaps.
      MAX(end_sector) - MIN(sector) > SUM(end_sector - sector) AS has_gaps,
      MAX(end_ns) AS end_ns,
      MAX(requeues) AS requeues,
      MAX(requeue_ns) AS requeue_ns
    FROM numbered
    GROUP BY run_id, device_id, issue_ns, way, done, alone
  ),
  -- Nearly all requests have bios of one thread, and nearly all bios that were
  -- issued at the same moment are of one. The others are different ones in each
  -- part.
  shared AS MATERIALIZED (
    SELECT
      *,
      sector
      > MAX(end_sector) OVER (
        PARTITION BY device_id, issue_ns, way, done, alone
        ORDER BY sector, end_sector
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS is_apart
    FROM numbered
    WHERE
      -- A join would let DuckDB join the requests and the threads first. No
      -- bio has a negative number.
      (device_id, issue_ns, way, COALESCE(done, -1), COALESCE(alone, -1)) IN (
        SELECT device_id, issue_ns, way, COALESCE(done, -1), COALESCE(alone, -1)
        FROM merged
        WHERE thread_id <> last_thread_id OR has_gaps
      )
  ),
  apart AS MATERIALIZED (
    SELECT
      *,
      SUM(CASE WHEN is_apart THEN 1 ELSE 0 END) OVER (
        PARTITION BY device_id, issue_ns, way, done, alone
        ORDER BY sector, end_sector
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS number
    FROM shared
  ),
  mixed AS MATERIALIZED (
    SELECT
      run_id, device_id,
      CASE part.part
        WHEN 'all' THEN 0
        WHEN 'flag' THEN thread_id % 8
        ELSE thread_id - thread_id % 8
      END AS part_id,
      issue_ns,
      MAX(end_ns) AS end_ns,
      MAX(requeues) AS requeues,
      MAX(requeue_ns) AS requeue_ns
    FROM apart
    CROSS JOIN part
    GROUP BY run_id, device_id, 3, issue_ns, way, done, alone, number
  ),
  request AS NOT MATERIALIZED (
    SELECT
      run_id, device_id,
      CASE part.part
        WHEN 'all' THEN 0
        WHEN 'flag' THEN thread_id % 8
        ELSE thread_id - thread_id % 8
      END AS part_id,
      issue_ns, end_ns, requeues, requeue_ns
    FROM merged
    CROSS JOIN part
    WHERE thread_id = last_thread_id AND has_gaps IS NOT TRUE
    UNION ALL
    SELECT run_id, device_id, part_id, issue_ns, end_ns, requeues, requeue_ns
    FROM mixed
  ),
  -- The flushes before writes.
  before_write AS NOT MATERIALIZED (
    SELECT
      of_thread.run_id, of_thread.device_id,
      CASE part.part
        WHEN 'all' THEN 0
        WHEN 'flag' THEN of_thread.thread_id % 8
        ELSE of_thread.thread_id - of_thread.thread_id % 8
      END AS part_id,
      bio.ts_ns AS begin_ns,
      bio.issue_ns - COALESCE(bio.requeue_ns, 0) AS end_ns
    FROM bio
    JOIN of_thread
      ON of_thread.run = bio.run
      AND of_thread.dev = bio.dev
      AND of_thread.flag = bio.flag
      AND of_thread.comm IS NOT DISTINCT FROM bio.comm
    CROSS JOIN part
    WHERE bio.has_preflush
  ),
  made AS (
    SELECT
      device_id, part_id,
      COUNT(*) AS requests,
      SUM(end_ns - issue_ns) AS sum_ns,
      SUM(requeues) AS requeues,
      SUM(requeue_ns) AS requeue_ns
    FROM request
    GROUP BY device_id, part_id
  ),
  -- A request counts 1, and a flush before a write 2^32, so that one sum holds
  -- the number of both.
  step AS NOT MATERIALIZED (
    SELECT
      run_id, device_id, part_id,
      -- 2^36 ns, about a minute.
      issue_ns - issue_ns % 68719476736 AS minute_ns,
      issue_ns AS at_ns,
      1 AS step
    FROM request
    UNION ALL
    SELECT run_id, device_id, part_id, end_ns - end_ns % 68719476736, end_ns, -1
    FROM request
    UNION ALL
    SELECT
      run_id, device_id, part_id,
      begin_ns - begin_ns % 68719476736,
      begin_ns, 4294967296
    FROM before_write
    UNION ALL
    SELECT
      run_id, device_id, part_id,
      end_ns - end_ns % 68719476736,
      end_ns, -4294967296
    FROM before_write
  ),
  minute AS (
    SELECT run_id, device_id, part_id, minute_ns, SUM(step) AS steps
    FROM step
    GROUP BY run_id, device_id, part_id, minute_ns
  ),
  -- What is at the device when a minute begins and when it ends.
  before AS MATERIALIZED (
    SELECT
      run_id, device_id, part_id, minute_ns,
      (LEAD(minute_ns) OVER in_order) AS next_ns,
      CAST((SUM(steps) OVER in_order) - steps AS BIGINT) AS begin_depth,
      CAST(SUM(steps) OVER in_order AS BIGINT) AS end_depth
    FROM minute
    WINDOW in_order AS (PARTITION BY device_id, part_id ORDER BY minute_ns)
  ),
  -- An engine keeps the rows of a window in memory. So a window is of a minute.
  -- It begins with what is at the device, and ends with none there: then the
  -- next part of the same minute follows. DuckDB is slow with many windows.
  windowed AS (
    SELECT run_id, device_id, part_id, minute_ns, at_ns, step FROM step
    UNION ALL
    SELECT run_id, device_id, part_id, minute_ns, minute_ns, begin_depth
    FROM before
    WHERE begin_depth > 0
    UNION ALL
    SELECT run_id, device_id, part_id, minute_ns, next_ns, -end_depth
    FROM before
    WHERE end_depth > 0
  ),
  sweep AS (
    SELECT
      device_id, part_id,
      CAST(SUM(step) OVER in_order AS BIGINT) AS depth,
      (LEAD(at_ns) OVER in_order) - at_ns AS gap_ns
    FROM windowed
    WINDOW
      in_order AS (
        PARTITION BY run_id, minute_ns
        -- What ends makes room for what begins at the same moment.
        ORDER BY device_id, part_id, at_ns, step
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      )
  ),
  busy AS (
    SELECT
      device_id, part_id,
      MAX(depth % 4294967296) AS max_depth,
      SUM(CASE WHEN depth > 0 THEN gap_ns ELSE 0 END) AS busy_ns,
      SUM(CASE WHEN depth % 4294967296 > 0 THEN gap_ns ELSE 0 END) AS request_ns
    FROM sweep
    GROUP BY device_id, part_id
  )
SELECT
  amount.dev AS dev,
  device_on.value AS below,
  amount.part AS part,
  amount.of_comm AS comm,
  amount.bios AS bios,
  amount.bytes AS bytes,
  made.requests AS requests,
  CASE WHEN amount.with_flags > 0 THEN amount.flushes END AS flushes,
  CASE WHEN amount.with_flags > 0 THEN amount.fua END AS fua,
  flushed.flush_ns AS flush_ns,
  flushed.max_flush_ns AS max_flush_ns,
  CASE WHEN amount.with_issue > 0 THEN amount.splits END AS splits,
  CASE WHEN amount.with_issue > 0 THEN made.requeues END AS requeues,
  CASE WHEN amount.with_issue > 0 THEN made.requeue_ns END AS requeue_ns,
  amount.errors AS errors,
  busy.busy_ns AS busy_ns,
  CAST(busy.busy_ns AS DOUBLE) / NULLIF(whole.time_ns, 0) AS busy,
  CAST(made.sum_ns AS DOUBLE) / NULLIF(busy.request_ns, 0) AS depth,
  busy.max_depth AS max_depth,
  CAST(ROUND(amount.queue_ns) AS BIGINT) AS queue_ns,
  CAST(ROUND(amount.device_ns) AS BIGINT) AS device_ns,
  amount.max_ns AS max_ns,
  longest.bio_id AS bio_id,
  amount.run AS run
FROM amount
JOIN whole ON whole.run = amount.run AND whole.dev = amount.dev
JOIN busy ON busy.device_id = amount.device_id AND busy.part_id = amount.part_id
JOIN longest
  ON longest.run = amount.run
  AND longest.dev = amount.dev
  AND longest.part = amount.part
  AND longest.of_comm IS NOT DISTINCT FROM amount.of_comm
JOIN made ON made.device_id = amount.device_id AND made.part_id = amount.part_id
LEFT JOIN syncline_meta AS device_on
  ON device_on.run = amount.run
  AND device_on.key = 'device_on.' || amount.dev
LEFT JOIN flushed
  ON flushed.run = amount.run
  AND flushed.dev = amount.dev
  AND amount.part = 'all'
ORDER BY
  amount.run, amount.dev,
  CASE amount.part WHEN 'all' THEN 0 WHEN 'thread' THEN 2 ELSE 1 END,
  CASE WHEN amount.part <> 'thread' THEN amount.part END DESC,
  busy.busy_ns DESC,
  amount.of_comm NULLS LAST;
