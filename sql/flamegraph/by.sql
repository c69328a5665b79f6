-- Flame graph: the requests that are drawn as one, and their weights.
--
-- :keys are what the frames are made of: columns of syncline_sync, which stand
-- first. What is not known is null, and left out of the sums.
--
-- Columns:
--   some_tid         id     A thread of those.
--   first_ts_ns      time   The first of them.
--   syncs            count  Requests.
--   syscall_known    count  Those of them whose syscall latency is known.
--   syscall_ns       ns     Its sum; null where none is known.
--   writeback_known  count  The same of the writeback latency.
--   writeback_ns     ns     Its sum.
--   journal_known    count  The same of the wait for the journal.
--   journal_ns       ns     Its sum.
--   flush_known      count  The same of cache flushes.
--   flush_ns         ns     Their sum.
--   bytes_known      count  The same of the bytes written back for them.
--   bytes            bytes  Their sum.
SELECT
  :keys,
  MIN(tid) AS some_tid,
  MIN(ts_ns) AS first_ts_ns,
  COUNT(*) AS syncs,
  COUNT(syscall_ns) AS syscall_known,
  CAST(SUM(syscall_ns) AS BIGINT) AS syscall_ns,
  COUNT(writeback_ns) AS writeback_known,
  CAST(SUM(writeback_ns) AS BIGINT) AS writeback_ns,
  COUNT(journal_ns) AS journal_known,
  CAST(SUM(journal_ns) AS BIGINT) AS journal_ns,
  COUNT(flush_ns) AS flush_known,
  CAST(SUM(flush_ns) AS BIGINT) AS flush_ns,
  COUNT(bytes) AS bytes_known,
  CAST(SUM(bytes) AS BIGINT) AS bytes
FROM syncline_sync
GROUP BY
  :keys;
