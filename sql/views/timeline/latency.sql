-- Latency: a counter in ms. It has the latency of a sync from its start to the
-- start of the next one, and 0 while no sync is in flight.
WITH
  reach AS (
    SELECT
      ts_ns, dur_ns,
      -- The latest end of this sync and of the earlier ones.
      MAX(ts_ns + dur_ns) OVER (
        ORDER BY ts_ns, sync_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS reached_ns,
      LEAD(ts_ns) OVER (ORDER BY ts_ns, sync_id) AS next_ns
    FROM syncline_sync_call
    WHERE dur_ns IS NOT NULL
  )
SELECT ts_ns AS ts, dur_ns / 1e6 AS value FROM reach
UNION ALL
SELECT reached_ns, 0.0 FROM reach WHERE next_ns IS NULL OR next_ns > reached_ns;
