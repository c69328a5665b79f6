-- Group blocks: the groups with the highest cost, in blocks of time.
--
-- The columns of the groups, in the blocks of a single run, for the 20 files,
-- thread names and stacks with the highest sums of time. A block in which a
-- group has no request has no row.
--
-- Columns:
--   blocks         count  Number of blocks.
--   block          count  Number of this block, from 0.
--   kind           text   file, thread or stack.
--   name           text   Path, name of the thread, or folded stack.
--   syncs          count  Number of requests.
--   whole          count  Number of requests whose start, end and bios are
--                         known.
--   empty          count  Number of these that succeeded without a bio.
--   syscalls       count  Number of requests with a known syscall latency.
--   syscall_ns     ns     Sum of their syscall latencies.
--   writebacks     count  Number of requests with a known writeback latency.
--   writeback_ns   ns     Sum of their writeback latencies.
--   times          count  Number of requests with a known start and end.
--   time_ns        ns     Sum of their durations, from the call (from the start
--                         without a call) to the end.
--   amounts        count  Number of requests with a known amount.
--   bytes          bytes  Bytes written back for them.
--   whole_bytes    bytes  Bytes written back for the requests in `whole`.
WITH
  cut AS (
    SELECT 8 AS blocks
    UNION ALL
    SELECT 12
    UNION ALL
    SELECT 16
    UNION ALL
    SELECT 24
  ),
  span AS (
    SELECT run, MIN(ts_ns) AS first_ns, MAX(ts_ns) - MIN(ts_ns) + 1 AS length_ns
    FROM syncline_sync_call
    GROUP BY run
  ),
  marked AS (
    SELECT
      sync.ts_ns - span.first_ns AS since_ns,
      span.length_ns, sync.path, sync.what, sync.comm, sync.stack,
      CASE WHEN ret < 0 THEN 0 WHEN bios = 0 THEN 1 ELSE 0 END AS empty,
      sync.bytes, sync.dur_ns, sync.syscall_ns, sync.writeback_ns,
      CASE
        WHEN incomplete IN ('start', 'end') THEN 0
        -- The amount is unknown if only the call was recorded.
        WHEN bios IS NULL THEN 0
        ELSE 1
      END AS whole
    FROM syncline_sync_call AS sync
    JOIN span ON span.run = sync.run
  ),
  request AS (
    SELECT
      'file' AS kind,
      COALESCE(path, '[' || what || ']', '[unknown file]') AS name,
      *
    FROM marked
    UNION ALL
    SELECT 'thread' AS kind, COALESCE(comm, '[unknown thread]') AS name, *
    FROM marked
    UNION ALL
    SELECT 'stack' AS kind, COALESCE(stack, '[no stack]') AS name, * FROM marked
  ),
  cost AS (
    SELECT
      kind, name,
      ROW_NUMBER() OVER (
        PARTITION BY kind
        ORDER BY COALESCE(SUM(dur_ns), 0) DESC, COUNT(*) DESC, name
      ) AS place
    FROM request
    GROUP BY kind, name
  ),
  placed AS (
    SELECT
      cut.blocks,
      since_ns * cut.blocks AS place_ns,
      length_ns, request.kind, request.name, whole, empty, bytes, dur_ns,
      syscall_ns, writeback_ns
    FROM request
    JOIN cost ON cost.kind = request.kind AND cost.name = request.name
    CROSS JOIN cut
    WHERE cost.place <= 20
  ),
  caused AS (
    SELECT
      blocks,
      -- Without the remainder, the division is exact in both engines.
      (place_ns - place_ns % length_ns) / length_ns AS block,
      kind, name,
      COUNT(*) AS syncs,
      SUM(whole) AS whole,
      SUM(whole * empty) AS empty,
      COUNT(syscall_ns) AS syscalls,
      COALESCE(SUM(syscall_ns), 0) AS syscall_ns,
      COUNT(writeback_ns) AS writebacks,
      COALESCE(SUM(writeback_ns), 0) AS writeback_ns,
      COUNT(dur_ns) AS times,
      COALESCE(SUM(dur_ns), 0) AS time_ns,
      COUNT(bytes) AS amounts,
      COALESCE(SUM(bytes), 0) AS bytes,
      COALESCE(SUM(whole * bytes), 0) AS whole_bytes
    FROM placed
    GROUP BY 1, 2, 3, 4
  )
SELECT
  blocks,
  CAST(block AS BIGINT) AS block,
  kind, name, syncs,
  CAST(whole AS BIGINT) AS whole,
  CAST(empty AS BIGINT) AS empty,
  syscalls,
  CAST(syscall_ns AS BIGINT) AS syscall_ns,
  writebacks,
  CAST(writeback_ns AS BIGINT) AS writeback_ns,
  times,
  CAST(time_ns AS BIGINT) AS time_ns,
  amounts,
  CAST(bytes AS BIGINT) AS bytes,
  CAST(whole_bytes AS BIGINT) AS whole_bytes
FROM caused
ORDER BY blocks, kind, name, block;
