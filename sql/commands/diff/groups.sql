-- Groups: the cost of each file, thread name and stack, as sums and counts.
--
-- It has only sums and counts, because these can be added up over the files
-- that match a pattern, and over the runs of a side; averages and shares are
-- computed from the totals. Each request is in three rows: one for its file,
-- one for its thread name, and one for its stack.
--
-- Columns:
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
  marked AS (
    SELECT
      path, what, comm, stack,
      CASE WHEN ret < 0 THEN 0 WHEN bios = 0 THEN 1 ELSE 0 END AS empty,
      bytes, dur_ns, syscall_ns, writeback_ns,
      CASE
        WHEN incomplete IN ('start', 'end') THEN 0
        -- The amount is unknown if only the call was recorded.
        WHEN bios IS NULL THEN 0
        ELSE 1
      END AS whole
    FROM syncline_sync_call
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
  caused AS (
    SELECT
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
    FROM request
    GROUP BY kind, name
  )
SELECT
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
ORDER BY kind, time_ns DESC, syncs DESC, name;
