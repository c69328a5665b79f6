-- Flame graph by file: the requests of each thread name and path.
--
-- What is not known is null, and left out of the sums.
--
-- Columns:
--   comm             text   Name of the thread.
--   path             text   File; null where it is not known.
--   tid              id     A thread of that name.
--   first_ts_ns      time   The first of them.
--   syncs            count  Requests.
--   syscall_known    count  Those of them whose syscall latency is known.
--   syscall_ns       ns     Its sum; null where none is known.
--   writeback_known  count  The same of the writeback latency.
--   writeback_ns     ns     Its sum.
--   bytes_known      count  The same of the bytes written back for them.
--   bytes            bytes  Their sum.
SELECT
  comm,
  path,
  MIN(tid) AS tid,
  MIN(ts_ns) AS first_ts_ns,
  COUNT(*) AS syncs,
  COUNT(syscall_ns) AS syscall_known,
  CAST(SUM(syscall_ns) AS BIGINT) AS syscall_ns,
  COUNT(writeback_ns) AS writeback_known,
  CAST(SUM(writeback_ns) AS BIGINT) AS writeback_ns,
  COUNT(bytes) AS bytes_known,
  CAST(SUM(bytes) AS BIGINT) AS bytes
FROM syncline_sync
GROUP BY
  comm,
  path;
