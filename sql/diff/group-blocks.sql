-- Group blocks: the costliest groups in blocks of time.
--
-- The columns of the groups in the blocks of a run that stands alone, for the
-- 20 files, thread names and stacks that cost the most time. A block in which
-- a group has no request has no row.
--
-- Columns:
--   blocks         count  How many blocks there are.
--   block          count  Which: 0 is the first.
--   kind           text   file, thread or stack.
--   name           text   Path, name of the thread, or folded stack.
--   syncs          count  Requests.
--   whole          count  Those seen from start to end, with known bios.
--   empty          count  Those of them that caused no bio.
--   syscalls       count  Requests with a known syscall latency.
--   syscall_ns     ns     Their syscall latency, summed.
--   writebacks     count  Requests with a known writeback latency.
--   writeback_ns   ns     Their writeback latency, summed.
--   times          count  Requests with a known start and end.
--   time_ns        ns     From the call (the start, with no call) to the end,
--                         summed over these.
--   amounts        count  Requests of which it is known what was written back.
--   bytes          bytes  Written back for these.
--   whole_bytes    bytes  Written back for those seen from start to end.
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
    FROM syncline_sync
    GROUP BY
      run
  ),
  marked AS (
    SELECT
      sync.ts_ns - span.first_ns AS since_ns,
      span.length_ns,
      sync.path,
      sync.comm,
      sync.stack,
      sync.bios,
      sync.bytes,
      sync.dur_ns,
      sync.syscall_ns,
      sync.writeback_ns,
      CASE
        WHEN incomplete IN ('start', 'end') THEN 0
        -- Of a call alone nobody knows what was written back.
        WHEN bios IS NULL THEN 0
        ELSE 1
      END AS whole
    FROM syncline_sync AS sync
    JOIN span ON span.run = sync.run
  ),
  request AS (
    SELECT 'file' AS kind, COALESCE(path, '[unknown file]') AS name, *
    FROM marked
    UNION ALL
    SELECT 'thread' AS kind, COALESCE(comm, '[unknown thread]') AS name, *
    FROM marked
    UNION ALL
    SELECT 'stack' AS kind, COALESCE(stack, '[no stack]') AS name, * FROM marked
  ),
  cost AS (
    SELECT
      kind,
      name,
      ROW_NUMBER() OVER (
        PARTITION BY
          kind
        ORDER BY COALESCE(SUM(dur_ns), 0) DESC, COUNT(*) DESC, name
      ) AS place
    FROM request
    GROUP BY
      kind,
      name
  ),
  placed AS (
    SELECT
      cut.blocks,
      since_ns * cut.blocks AS place_ns,
      length_ns,
      request.kind,
      request.name,
      whole,
      bios,
      bytes,
      dur_ns,
      syscall_ns,
      writeback_ns
    FROM request
    JOIN cost ON cost.kind = request.kind AND cost.name = request.name
    CROSS JOIN cut
    WHERE
      cost.place <= 20
  ),
  caused AS (
    SELECT
      blocks,
      -- The remainder off first: then both engines divide without a rest.
      (place_ns - place_ns % length_ns) / length_ns AS block,
      kind,
      name,
      COUNT(*) AS syncs,
      SUM(whole) AS whole,
      SUM(CASE WHEN bios = 0 THEN whole ELSE 0 END) AS empty,
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
    GROUP BY
      1,
      2,
      3,
      4
  )
SELECT
  blocks,
  CAST(block AS BIGINT) AS block,
  kind,
  name,
  syncs,
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
ORDER BY
  blocks,
  kind,
  name,
  block;
