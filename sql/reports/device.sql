-- Device: what each device was busy with, and for whom.
--
-- A request of the block layer is one bio, or several that were merged: bios
-- that were issued to one device at the same moment. It is at the device from
-- its issue to its completion; from its submit, if the issue is not recorded. A
-- bio is sync if its flags have an S, so somebody waits for it. An input whose
-- bios have no known device gives no rows.
--
-- Columns:
--   dev         text   Device. One that is stacked on another has rows of its
--                      own. If the recording has remaps, its bios are at the
--                      device from their issue to the device below.
--   below       text   The devices directly below it, with a blank between
--                      them: those that the run directory names, else those to
--                      which bios were redirected. Each has its name, or its
--                      number if the name is not known. Empty if there are
--                      none, null if that is not known.
--   part        text   all: the whole device. sync, async: bios with and
--                      without the flag. unknown: bios without known flags.
--                      thread: bios of the threads of one name.
--   comm        text   Name of the thread that submitted the bios.
--   bios        count  Number of bios whose submit and completion are recorded.
--   bytes       bytes  Their size.
--   requests    count  Number of requests of the block layer that they made.
--                      The other bios were merged into these.
--   flushes     count  Number of bios that asked for a flush before them.
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
--   errors      count  Number of bios that failed.
--   busy_ns     ns     Time in which at least one of them was at the device.
--   busy        share  Part of the time from the first submit to the last
--                      completion of the device.
--   depth       ratio  Average number of requests at the device while it was
--                      busy with them.
--   max_depth   count  The most requests that were there at once.
--   queue_ns    ns     Average time of a bio in the queue, before its issue.
--   device_ns   ns     Average time of a bio at the device.
--   max_ns      ns     The longest time from submit to completion.
--   bio_id      id     That bio.
--   run         text   Name of the run, if the input holds several.
WITH
  bio AS MATERIALIZED (
    SELECT
      run,
      dev,
      bio_id,
      comm,
      bytes,
      error,
      rwbs,
      queue_ns,
      device_ns,
      requeues,
      requeue_ns,
      parts,
      dur_ns,
      ts_ns,
      ts_ns + COALESCE(queue_ns, 0) AS issue_ns,
      ts_ns + dur_ns AS end_ns,
      CASE
        WHEN rwbs IS NULL THEN 'unknown'
        WHEN rwbs LIKE '%S%' THEN 'sync'
        ELSE 'async'
      END AS flag,
      -- Bios that were issued at the same moment are of one request.
      CASE WHEN queue_ns IS NULL THEN bio_id END AS alone
    FROM syncline_bio
    WHERE
      dev IS NOT NULL
      AND dur_ns IS NOT NULL
  ),
  part(part) AS (VALUES ('all'), ('flag'), ('thread')),
  -- First of each thread and flag: these are few rows.
  of_thread AS (
    SELECT
      run,
      dev,
      flag,
      comm,
      COUNT(*) AS bios,
      SUM(bytes) AS bytes,
      SUM(CASE WHEN rwbs LIKE 'F%' THEN 1 ELSE 0 END) AS flushes,
      SUM(CASE WHEN rwbs LIKE '%WF%' THEN 1 ELSE 0 END) AS fua,
      COUNT(rwbs) AS with_flags,
      SUM(COALESCE(parts, 1) - 1) AS splits,
      SUM(CASE WHEN error < 0 THEN 1 ELSE 0 END) AS errors,
      COUNT(queue_ns) AS with_issue,
      SUM(queue_ns) AS queue_ns,
      COUNT(device_ns) AS at_device,
      SUM(device_ns) AS device_ns,
      MAX(dur_ns) AS max_ns,
      MIN(ts_ns) AS first_ns,
      MAX(end_ns) AS last_ns
    FROM bio
    GROUP BY
      run,
      dev,
      flag,
      comm
  ),
  whole AS (
    SELECT run, dev, MAX(last_ns) - MIN(first_ns) AS time_ns
    FROM of_thread
    GROUP BY
      run,
      dev
  ),
  sums AS (
    SELECT
      of_thread.*,
      CASE part.part WHEN 'flag' THEN flag ELSE part.part END AS of_part,
      CASE WHEN part.part = 'thread' THEN comm END AS of_comm
    FROM of_thread
    CROSS JOIN part
  ),
  amount AS MATERIALIZED (
    SELECT
      run,
      dev,
      of_part AS part,
      of_comm,
      SUM(bios) AS bios,
      SUM(bytes) AS bytes,
      SUM(flushes) AS flushes,
      SUM(fua) AS fua,
      SUM(with_flags) AS with_flags,
      SUM(splits) AS splits,
      SUM(with_issue) AS with_issue,
      SUM(errors) AS errors,
      CAST(SUM(queue_ns) AS DOUBLE) / NULLIF(SUM(with_issue), 0) AS queue_ns,
      CAST(SUM(device_ns) AS DOUBLE) / NULLIF(SUM(at_device), 0) AS device_ns,
      MAX(max_ns) AS max_ns
    FROM sums
    GROUP BY
      run,
      dev,
      of_part,
      of_comm
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
    GROUP BY
      amount.run,
      amount.dev,
      amount.part,
      amount.of_comm
  ),
  -- The flushes of each device, and that of a file system, with their lengths.
  flush AS (
    SELECT run, dev, queue_ns - COALESCE(requeue_ns, 0) AS length_ns
    FROM bio
    WHERE
      rwbs LIKE 'F%'
      AND queue_ns IS NOT NULL
    UNION ALL
    SELECT wait.run, sync.dev, wait.dur_ns
    FROM syncline_wait AS wait
    JOIN syncline_sync AS sync
      ON sync.run = wait.run
      AND sync.sync_id = wait.sync_id
    WHERE
      wait.wait = 'flush'
  ),
  flushed AS (
    SELECT
      run,
      dev,
      CAST(ROUND(AVG(length_ns)) AS BIGINT) AS flush_ns,
      MAX(length_ns) AS max_flush_ns
    FROM flush
    GROUP BY
      run,
      dev
  ),
  request AS MATERIALIZED (
    SELECT
      run,
      dev,
      part,
      of_comm,
      issue_ns,
      MAX(end_ns) AS end_ns,
      MAX(COALESCE(requeues, 0)) AS requeues,
      MAX(COALESCE(requeue_ns, 0)) AS requeue_ns
    FROM (
      SELECT
        run,
        dev,
        issue_ns,
        alone,
        end_ns,
        requeues,
        requeue_ns,
        CASE part.part WHEN 'flag' THEN flag ELSE part.part END AS part,
        CASE WHEN part.part = 'thread' THEN comm END AS of_comm
      FROM bio
      CROSS JOIN part
    ) AS of_part
    GROUP BY
      run,
      dev,
      part,
      of_comm,
      issue_ns,
      alone
  ),
  -- A window holds no column that it does not need.
  reach AS (
    SELECT
      run,
      dev,
      part,
      of_comm,
      issue_ns,
      end_ns,
      MAX(end_ns) OVER (
        PARTITION BY
          run,
          dev,
          part,
          of_comm
        ORDER BY issue_ns, end_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ns
    FROM request
  ),
  requeued AS (
    SELECT
      run,
      dev,
      part,
      of_comm,
      SUM(requeues) AS requeues,
      SUM(requeue_ns) AS requeue_ns
    FROM request
    GROUP BY
      run,
      dev,
      part,
      of_comm
  ),
  busy AS (
    SELECT
      run,
      dev,
      part,
      of_comm,
      COUNT(*) AS requests,
      SUM(end_ns - issue_ns) AS sum_ns,
      SUM(
        CASE
          WHEN reached_ns IS NULL
          OR reached_ns <= issue_ns THEN end_ns - issue_ns
          WHEN reached_ns < end_ns THEN end_ns - reached_ns
          ELSE 0
        END
      ) AS busy_ns
    FROM reach
    GROUP BY
      run,
      dev,
      part,
      of_comm
  ),
  step AS (
    SELECT run, dev, part, of_comm, issue_ns AS at_ns, 1 AS step FROM request
    UNION ALL
    SELECT run, dev, part, of_comm, end_ns, -1 FROM request
  ),
  depth AS (
    SELECT
      run,
      dev,
      part,
      of_comm,
      SUM(step) OVER (
        PARTITION BY
          run,
          dev,
          part,
          of_comm
        -- What ends makes room for what begins at the same moment.
        ORDER BY at_ns, step
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS depth
    FROM step
  ),
  deepest AS (
    SELECT run, dev, part, of_comm, MAX(depth) AS max_depth
    FROM depth
    GROUP BY
      run,
      dev,
      part,
      of_comm
  )
SELECT
  amount.dev AS dev,
  device_on.value AS below,
  amount.part AS part,
  amount.of_comm AS comm,
  amount.bios AS bios,
  amount.bytes AS bytes,
  busy.requests AS requests,
  CASE WHEN amount.with_flags > 0 THEN amount.flushes END AS flushes,
  CASE WHEN amount.with_flags > 0 THEN amount.fua END AS fua,
  flushed.flush_ns AS flush_ns,
  flushed.max_flush_ns AS max_flush_ns,
  CASE WHEN amount.with_issue > 0 THEN amount.splits END AS splits,
  CASE WHEN amount.with_issue > 0 THEN requeued.requeues END AS requeues,
  CASE WHEN amount.with_issue > 0 THEN requeued.requeue_ns END AS requeue_ns,
  amount.errors AS errors,
  busy.busy_ns AS busy_ns,
  CAST(busy.busy_ns AS DOUBLE) / NULLIF(whole.time_ns, 0) AS busy,
  CAST(busy.sum_ns AS DOUBLE) / NULLIF(busy.busy_ns, 0) AS depth,
  deepest.max_depth AS max_depth,
  CAST(ROUND(amount.queue_ns) AS BIGINT) AS queue_ns,
  CAST(ROUND(amount.device_ns) AS BIGINT) AS device_ns,
  amount.max_ns AS max_ns,
  longest.bio_id AS bio_id,
  amount.run AS run
FROM amount
JOIN whole ON whole.run = amount.run AND whole.dev = amount.dev
JOIN busy
  ON busy.run = amount.run
  AND busy.dev = amount.dev
  AND busy.part = amount.part
  AND busy.of_comm IS NOT DISTINCT FROM amount.of_comm
JOIN longest
  ON longest.run = amount.run
  AND longest.dev = amount.dev
  AND longest.part = amount.part
  AND longest.of_comm IS NOT DISTINCT FROM amount.of_comm
JOIN requeued
  ON requeued.run = amount.run
  AND requeued.dev = amount.dev
  AND requeued.part = amount.part
  AND requeued.of_comm IS NOT DISTINCT FROM amount.of_comm
JOIN deepest
  ON deepest.run = amount.run
  AND deepest.dev = amount.dev
  AND deepest.part = amount.part
  AND deepest.of_comm IS NOT DISTINCT FROM amount.of_comm
LEFT JOIN syncline_meta AS device_on
  ON device_on.run = amount.run
  AND device_on.key = 'device_on.' || amount.dev
LEFT JOIN flushed
  ON flushed.run = amount.run
  AND flushed.dev = amount.dev
  AND amount.part = 'all'
ORDER BY
  amount.run,
  amount.dev,
  CASE amount.part WHEN 'all' THEN 0 WHEN 'thread' THEN 2 ELSE 1 END,
  CASE WHEN amount.part <> 'thread' THEN amount.part END DESC,
  busy.busy_ns DESC,
  amount.of_comm NULLS LAST;
