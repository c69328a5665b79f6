-- Device: what each device was busy with, and for whom.
--
-- A request of the block layer is one bio, or several that were merged: bios
-- of adjacent sectors that were issued to one device at the same moment. Bios
-- that the block layer reports end with their request too, so if their ends
-- differ, they are of different requests. A request is at the device from its
-- issue to its completion, or from its submit if the issue is not recorded. A
-- write that asks for a flush before it keeps the device busy from its submit
-- on, although its request comes later.
--
-- A write is sync if its flags have an S, so somebody waits for it. Reads and
-- discards use the device too, so they count where the input has them. An
-- input whose bios have no known device gives no rows.
--
-- Parts:
--   all      The whole device.
--   sync, async  Writes and flushes with and without the flag.
--   read     Reads.
--   other    Discards, zeroes, and what the kernel does not name.
--   unknown  Bios without known flags, but for reads.
--   thread   Bios of the threads of one name.
--
-- Narrow: dev part comm busy_ns busy bios bytes max_ns depth flushes
--
-- Columns:
--   dev         text   Device to which the bios were submitted. If it is
--                      stacked on another, that one has rows too, unless all
--                      its bios came by a recorded remap. These count for the
--                      upper one, from their issue to the device below.
--   below       text   The devices directly below it, with a blank between
--                      them. They come from the run directory, or else from
--                      the remaps in the recording. Each has its name, or its
--                      number if the name is not known. Empty if no device is
--                      below it. Null if that is not known.
--   part        text   As above.
--   comm        text   Name of the thread that submitted the bios.
--   bios        count  Number of bios whose submit and completion are recorded.
--   bytes       bytes  Sum of the sizes of those that write or read, as far as
--                      these are known.
--   requests    count  Number of requests of the block layer that they made.
--                      The other bios were merged into these.
--   flushes     count  Number of bios that asked for a flush, with data after
--                      it or without. It differs from the kernel's counter of
--                      flushes (the 16th field of /sys/block/DEVICE/stat),
--                      because on a device without FUA the kernel counts one
--                      more for each bio that asks for FUA, and it counts once
--                      what one flush answers for several bios.
--   fua         count  Number of bios that asked for FUA.
--   flush_ns    ns     Average length of a flush: how long a sync waited for
--                      it. For the flush of no such wait, the duration of a bio
--                      that only flushes, or for a write that asks for a flush
--                      before it, the time from its submit to its first issue.
--                      Only for the whole device.
--   max_flush_ns  ns   The longest one.
--   splits      count  Number of requests that splitting added: 2 for a bio in
--                      3 parts.
--   requeues    count  How often the driver returned a request to the queue.
--   requeue_ns  ns     Sum of the times from the first issue of these requests
--                      to the last one.
--   errors      count  Number of bios that failed. Null if this is not known
--                      for any bio.
--   busy_ns     ns     Time in which at least one of them was at the device, or
--                      the device flushed before one of them.
--   busy        share  Part of the time from the first submit to the last
--                      completion of the device.
--   depth       ratio  Average number of requests at the device while at least
--                      one was there.
--   max_depth   count  The most requests that were there at once.
--   queue_ns    ns     Average time of a bio in the queue, before its issue.
--                      Bios that ask for a flush before them do not count.
--   device_ns   ns     Average time of a bio at the device.
--   max_ns      ns     The longest time from submit to completion.
--   bio_id      id     That bio.
--   run         text   Name of the run, if the input holds several.
WITH
  -- A number for each device, because a sort by the names of run and device
  -- takes twice as long.
  device AS (
    SELECT
      run, dev,
      CAST(ROW_NUMBER() OVER (ORDER BY run, dev) AS INTEGER) AS device
    FROM (SELECT DISTINCT run, dev FROM syncline_bio WHERE dev IS NOT NULL)
  ),
  -- Not kept, because each reader takes a few columns: 700,000 bios would take
  -- 0.9 GB instead of 0.6.
  bio AS NOT MATERIALIZED (
    SELECT
      *,
      ts_ns + COALESCE(queue_ns, 0) AS issue_ns,
      ts_ns + dur_ns AS end_ns,
      sector + (bytes + 511) / 512 AS end_sector,
      CASE
        WHEN direction = 'read' THEN 'read'
        WHEN rwbs IS NULL THEN 'unknown'
        WHEN direction NOT IN ('write', 'flush') THEN 'other'
        WHEN rwbs LIKE '%S%' THEN 'sync'
        ELSE 'async'
      END AS flag,
      -- The device flushes before it.
      rwbs LIKE 'F%'
      AND direction = 'write'
      AND queue_ns > 0 AS has_preflush,
      -- Bios that the block layer reports have no address. They end with their
      -- request, so those with different ends are of different requests. Other
      -- bios of a request end one after the other.
      CASE
        WHEN bio IS NULL AND below IS NULL THEN ts_ns + dur_ns
      END AS request_end_ns
    FROM syncline_bio
    JOIN device USING (run, dev)
    WHERE dur_ns IS NOT NULL
  ),
  -- A bio counts three times: for the whole device, for its flag and for its
  -- thread.
  part(part) AS (VALUES ('all'), ('flag'), ('thread')),
  -- A bio of each part. `of_comm` is null but for a thread.
  part_bio AS NOT MATERIALIZED (
    SELECT
      CASE part.part WHEN 'flag' THEN flag ELSE part.part END AS part,
      CASE part.part WHEN 'thread' THEN comm END AS of_comm,
      bio.*
    FROM bio
    CROSS JOIN part
  ),
  -- The bios of each part of a device, and their sums.
  amount AS (
    SELECT
      run, dev, part, of_comm,
      COUNT(*) AS bios,
      SUM(CASE WHEN flag <> 'other' THEN bytes END) AS bytes,
      -- An F before the W is a flush, an F after it is FUA.
      SUM(CAST(rwbs LIKE 'F%' AS INTEGER)) AS flushes,
      SUM(CAST(rwbs LIKE '%WF%' AS INTEGER)) AS fua,
      COUNT(queue_ns) AS with_issue,
      COALESCE(SUM(parts - 1), 0) AS splits,
      SUM(CAST(error < 0 AS INTEGER)) AS errors,
      AVG(CASE WHEN has_preflush IS NOT TRUE THEN queue_ns END) AS queue_ns,
      AVG(device_ns) AS device_ns,
      MAX(dur_ns) AS max_ns,
      MAX(end_ns) - MIN(ts_ns) AS time_ns
    FROM part_bio
    GROUP BY run, dev, part, of_comm
  ),
  -- Few bios take as long as the longest one of a part, and only they are
  -- compared by their part.
  long_bio AS (
    SELECT * FROM part_bio WHERE dur_ns IN (SELECT max_ns FROM amount)
  ),
  -- The first one of the bios that took the longest.
  longest AS (
    SELECT of!(amount, (run, dev, part, of_comm)), MIN(bio_id) AS bio_id
    FROM amount
    JOIN long_bio
      ON long_bio.dur_ns = amount.max_ns
      AND same!(long_bio, amount, (run, dev, part, of_comm))
    GROUP BY amount.run, amount.dev, amount.part, amount.of_comm
  ),
  issued AS NOT MATERIALIZED (SELECT * FROM bio WHERE queue_ns IS NOT NULL),
  -- The requests that the issued bios of each part made. Bios of one request
  -- are on one island of sectors.
  issued_request AS (
    SELECT
      device,
      CASE part.part WHEN 'flag' THEN flag ELSE part.part END AS part,
      CASE part.part WHEN 'thread' THEN comm END AS of_comm,
      issue_ns AS ts_ns,
      MAX(end_ns) - issue_ns AS dur_ns,
      MAX(requeues) AS requeues,
      MAX(requeue_ns) AS requeue_ns
    FROM islands!(
      issued, sector, end_sector,
      (device, issue_ns, direction, request_end_ns)
    ) AS merged
    CROSS JOIN part
    -- By number, because the name `part` would be the column of the table part.
    GROUP BY device, 2, 3, issue_ns, direction, request_end_ns, island
  ),
  -- Without an issue, nothing says that a bio was merged. Not kept, because
  -- 10^6 of them would take 0.2 GB.
  request AS NOT MATERIALIZED (
    SELECT * FROM issued_request
    UNION ALL
    SELECT
      device, part, of_comm, issue_ns,
      end_ns - issue_ns,
      requeues, requeue_ns
    FROM part_bio
    WHERE queue_ns IS NULL
  ),
  -- How many requests each part made, and how often they were requeued.
  request_sum AS (
    SELECT
      device, part, of_comm,
      COUNT(*) AS requests,
      COALESCE(SUM(requeues), 0) AS requeues,
      COALESCE(SUM(requeue_ns), 0) AS requeue_ns
    FROM request
    GROUP BY device, part, of_comm
  ),
  -- What the device is busy with: requests, and the flushes before them.
  work AS (
    SELECT device, part, of_comm, ts_ns, dur_ns, 1 AS requests FROM request
    UNION ALL
    -- Until its first issue: queue_ns reaches to the last one.
    SELECT device, part, of_comm, ts_ns, queue_ns - COALESCE(requeue_ns, 0), 0
    FROM part_bio
    WHERE has_preflush
  ),
  -- How long each part was at work, and with how many requests at once.
  busy AS (
    SELECT
      device, part, of_comm,
      SUM(CASE WHEN depth > 0 THEN dur_ns END) AS busy_ns,
      SUM(CASE WHEN weight > 0 THEN dur_ns END) AS any_request_ns,
      SUM(weight * dur_ns) AS all_requests_ns,
      MAX(weight) AS max_depth
    FROM weighted_depth!(work, requests, (device, part, of_comm))
    GROUP BY device, part, of_comm
  ),
  -- The length of each flush, on the device of its bio, or for the wait of a
  -- sync, on the device of its file system.
  flush AS (
    SELECT
      run, dev,
      CASE
        WHEN direction = 'flush' THEN dur_ns
        ELSE queue_ns - COALESCE(requeue_ns, 0)
      END AS dur_ns
    FROM bio
    WHERE
      rwbs LIKE 'F%'
      -- If waits are recorded, the flush of a sync is the wait below instead.
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
    SELECT run, dev, AVG(dur_ns) AS flush_ns, MAX(dur_ns) AS max_flush_ns
    FROM flush
    GROUP BY run, dev
  )
SELECT
  amount.dev AS dev,
  device_on.value AS below,
  amount.part AS part,
  amount.of_comm AS comm,
  amount.bios AS bios,
  amount.bytes AS bytes,
  request_sum.requests AS requests,
  amount.flushes AS flushes,
  amount.fua AS fua,
  CAST(ROUND(flushed.flush_ns) AS BIGINT) AS flush_ns,
  flushed.max_flush_ns AS max_flush_ns,
  CASE WHEN amount.with_issue > 0 THEN amount.splits END AS splits,
  CASE WHEN amount.with_issue > 0 THEN request_sum.requeues END AS requeues,
  CASE WHEN amount.with_issue > 0 THEN request_sum.requeue_ns END AS requeue_ns,
  amount.errors AS errors,
  COALESCE(busy.busy_ns, 0) AS busy_ns,
  share!(COALESCE(busy.busy_ns, 0), whole.time_ns) AS busy,
  share!(busy.all_requests_ns, busy.any_request_ns) AS depth,
  COALESCE(busy.max_depth, 0) AS max_depth,
  CAST(ROUND(amount.queue_ns) AS BIGINT) AS queue_ns,
  CAST(ROUND(amount.device_ns) AS BIGINT) AS device_ns,
  amount.max_ns AS max_ns,
  longest.bio_id AS bio_id,
  amount.run AS run
FROM amount
JOIN device USING (run, dev)
JOIN amount AS whole ON whole.part = 'all' AND same!(whole, amount, (run, dev))
JOIN request_sum
  ON request_sum.device = device.device
  AND same!(request_sum, amount, (part, of_comm))
JOIN longest ON same!(longest, amount, (run, dev, part, of_comm))
LEFT JOIN busy
  ON busy.device = device.device
  AND same!(busy, amount, (part, of_comm))
LEFT JOIN syncline_meta AS device_on
  ON device_on.run = amount.run
  AND device_on.key = 'device_on.' || amount.dev
LEFT JOIN flushed ON amount.part = 'all' AND same!(flushed, amount, (run, dev))
ORDER BY
  amount.run, amount.dev,
  CASE amount.part WHEN 'all' THEN 0 WHEN 'thread' THEN 2 ELSE 1 END,
  CASE WHEN amount.part <> 'thread' THEN amount.part END DESC,
  COALESCE(busy.busy_ns, 0) DESC,
  amount.of_comm NULLS LAST;
