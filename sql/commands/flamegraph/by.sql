-- Flame graph: groups of requests that are drawn as one, and their weights.
--
-- :keys are the columns of syncline_sync that make up the frames. They are the
-- first columns of the result. Unknown values are null and not part of the
-- sums.
--
-- Columns:
--   some_tid         id     One of the threads of these requests.
--   first_ts_ns      time   Time of the first of them.
--   syncs            count  Number of requests.
--   syscall_known    count  Number of requests with a known syscall latency.
--   syscall_ns       ns     Sum of the syscall latencies. Null if none is
--                           known.
--   writeback_known  count  Number of requests with a known writeback latency.
--   writeback_ns     ns     Sum of the writeback latencies.
--   journal_known    count  Number of requests with a known wait for the
--                           journal.
--   journal_ns       ns     Sum of the waits for the journal.
--   flush_known      count  Number of requests with a known time in cache
--                           flushes.
--   flush_ns         ns     Sum of the times in cache flushes.
--   bytes_known      count  Number of requests with a known amount.
--   bytes            bytes  Bytes written back for them.
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
GROUP BY :keys;
