-- Empty syncs: who calls sync although no data are written for it.
--
-- That does not make it needless: it may have waited for a commit or a flush
-- without which other data would not be durable. The report durability counts
-- those that waited for a flush and those that waited for nothing, and syncline
-- advise finds those that are needless.
--
-- A sync is empty if it caused no bio with data, because nothing was dirty or
-- another thread was already writing it. A sync that failed is not empty,
-- because its data may be dirty still. The report covers the syncs whose start
-- and end were recorded, and whose bios are known. So it leaves out call-only
-- ones, and a sync or syncfs without an id and without a bio of its own, for
-- which flusher threads may have written. A row is a thread name, sync call,
-- file and stack, of all runs of the input. The row with the most empty syncs
-- comes first.
--
-- Narrow: comm op path empty syncs empty_share latency_sum_ns share
--
-- Columns:
--   comm            text   Name of the thread.
--   op              text   Sync call. Null without one.
--   path            text   Path of the file. Null if it is not known, and if
--                          there are several.
--   empty           count  Number of empty syncs.
--   syncs           count  Number of all syncs in this row.
--   empty_share     share  empty / syncs.
--   share           share  empty / all empty syncs of the input. 0 without one.
--   latency_sum_ns  ns     Sum of the syscall latencies of the empty syncs.
--                          Null if none of them has one.
--   stack           text   User stack, frames joined by `;`, outermost first.
WITH
  -- Each caller, with or without empty syncs.
  caller AS (
    SELECT
      comm, op, path, stack,
      SUM(is_empty!(sync)) AS empty,
      COUNT(*) AS syncs,
      sum_where!(syscall_ns, is_empty!(sync) = 1) AS latency_ns
    FROM syncline_sync_call AS sync
    WHERE bios IS NOT NULL AND is_whole!(sync)
    GROUP BY comm, op, path, stack
  )
SELECT
  comm, op, path,
  CAST(empty AS BIGINT) AS empty,
  syncs,
  share!(empty, syncs) AS empty_share,
  COALESCE(share!(empty, SUM(empty) OVER ()), 0.0) AS share,
  latency_ns AS latency_sum_ns,
  stack
FROM caller
ORDER BY
  empty DESC,
  COALESCE(latency_ns, 0) DESC,
  syncs DESC,
  comm NULLS LAST,
  op NULLS LAST,
  path NULLS LAST,
  stack NULLS LAST;
