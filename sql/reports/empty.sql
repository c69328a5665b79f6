-- Empty syncs: who asks for persistence of data that is not dirty.
--
-- A sync is empty if it caused no bio: nothing was dirty, or another thread
-- was already writing it. A sync that failed is not empty: its data may be
-- dirty still. Covers the syncs whose start and end were recorded, except
-- call-only ones, and except sync and syncfs without ids: it is not known what
-- flusher threads wrote for these. A row is a thread name, sync call, file and
-- stack. The row with the most empty syncs comes first.
--
-- Columns:
--   comm            text   Name of the thread.
--   op              text   Sync call. Null without one.
--   path            text   Path of the file.
--   empty           count  Number of empty syncs.
--   syncs           count  Number of all syncs in this row.
--   empty_share     share  empty / syncs.
--   share           share  empty / all empty syncs of the input. 0 without one.
--   latency_sum_ns  ns     Sum of the syscall latencies of the empty syncs.
--   stack           text   User stack, frames joined by `;`, outermost first.
WITH
  request AS (
    SELECT
      comm, op, path, stack, syscall_ns,
      CASE WHEN bios = 0 AND COALESCE(ret, 0) >= 0 THEN 1 ELSE 0 END AS empty
    FROM syncline_sync_call
    WHERE
      bios IS NOT NULL
      AND (incomplete IS NULL OR incomplete NOT IN ('start', 'end'))
  ),
  caused AS (
    SELECT
      comm, op, path, stack,
      SUM(empty) AS empty,
      COUNT(*) AS syncs,
      -- 0 without empty syncs; null if none of them has a known latency.
      CASE
        WHEN SUM(empty) = 0 THEN 0
        ELSE SUM(CASE WHEN empty = 1 THEN syscall_ns END)
      END AS latency_sum_ns
    FROM request
    GROUP BY comm, op, path, stack
  ),
  total AS (SELECT SUM(empty) AS empty FROM caused)
SELECT
  caused.comm, caused.op, caused.path,
  CAST(caused.empty AS BIGINT) AS empty,
  caused.syncs,
  CAST(caused.empty AS DOUBLE) / caused.syncs AS empty_share,
  -- Without a constant 0, which is an integer in SQLite only.
  CAST(caused.empty AS DOUBLE)
  / CASE WHEN total.empty > 0 THEN total.empty ELSE 1 END AS share,
  CAST(caused.latency_sum_ns AS BIGINT) AS latency_sum_ns,
  caused.stack
FROM caused
CROSS JOIN total
ORDER BY
  caused.empty DESC,
  COALESCE(caused.latency_sum_ns, 0) DESC,
  caused.syncs DESC,
  caused.comm NULLS LAST,
  caused.op NULLS LAST,
  caused.path NULLS LAST,
  caused.stack NULLS LAST;
