-- Groups: what each file, thread name and stack caused, as sums and counts.
--
-- Sums and counts alone, since these add up: over the files of a pattern, over
-- the runs of a side. Averages and shares are made of them. Each request is in
-- three rows: that of its file, of the name of its thread, of its stack.
--
-- Columns:
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
  marked AS (
    SELECT
      path,
      comm,
      stack,
      bios,
      bytes,
      dur_ns,
      syscall_ns,
      writeback_ns,
      CASE
        WHEN incomplete IN ('start', 'end') THEN 0
        -- Of a call alone nobody knows what was written back.
        WHEN bios IS NULL THEN 0
        ELSE 1
      END AS whole
    FROM syncline_sync
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
  caused AS (
    SELECT
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
    FROM request
    GROUP BY
      kind,
      name
  )
SELECT
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
  kind,
  time_ns DESC,
  syncs DESC,
  name;
