-- Empty syncs: who asks for persistence of what needs none.
--
-- A request is empty if it caused no bio: nothing was dirty, or another thread
-- was already writing it. Over the requests seen from start to end, and not
-- those of which only the call is known; a row is a thread's name, syscall,
-- file and stack. Who causes the most comes first, who causes none last.
--
-- Columns:
--   comm            text   Name of the thread.
--   op              text   Syscall, where there is one.
--   path            text   File.
--   empty           count  Empty syncs.
--   syncs           count  All syncs of this row.
--   empty_share     share  empty / syncs.
--   share           share  empty, of all empty syncs; 0 where there is none.
--   latency_sum_ns  ns     Syscall latency of the empty ones, summed.
--   stack           text   User stack, folded by `;`, outermost first.
WITH
  caused AS (
    SELECT
      comm,
      op,
      path,
      stack,
      SUM(CASE WHEN bios = 0 THEN 1 ELSE 0 END) AS empty,
      COUNT(*) AS syncs,
      -- No empty sync took no time; of some the latency may not be known.
      CASE
        WHEN SUM(CASE WHEN bios = 0 THEN 1 ELSE 0 END) = 0 THEN 0
        ELSE SUM(CASE WHEN bios = 0 THEN syscall_ns END)
      END AS latency_sum_ns
    FROM syncline_sync
    WHERE
      bios IS NOT NULL
      AND (incomplete IS NULL OR incomplete NOT IN ('start', 'end'))
    GROUP BY
      comm,
      op,
      path,
      stack
  ),
  total AS (SELECT SUM(empty) AS empty FROM caused)
SELECT
  caused.comm,
  caused.op,
  caused.path,
  CAST(caused.empty AS BIGINT) AS empty,
  caused.syncs,
  CAST(caused.empty AS DOUBLE) / caused.syncs AS empty_share,
  COALESCE(CAST(caused.empty AS DOUBLE) / NULLIF(total.empty, 0), 0) AS share,
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
