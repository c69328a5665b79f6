-- Blocks: metrics of the summary in blocks of time, of equal length.
--
-- A diff resamples these blocks if a side is a single run. The time from the
-- first request to the last one is divided into 8, 12, 16 and 24 blocks. A
-- request belongs to the block in which it begins. The summary describes which
-- requests each metric covers. The wall time of parallel syncs is counted in
-- the block of the request that adds it. Blocks without a request have no row.
--
-- Columns:
--   blocks                  count  Number of blocks.
--   block                   count  Number of this block, from 0.
--   syncs                   count  Number of requests.
--   failed_syncs            count  Number of requests that failed.
--   empty_share             share  Share of empty syncs in the requests whose
--                                  start and end were recorded.
--   syscall_latency_avg     ns     Average.
--   syscall_latency_p50     ns     Median.
--   syscall_latency_p90     ns     90th percentile.
--   syscall_latency_p99     ns     99th percentile.
--   syscall_latency_sum     ns     Sum.
--   writeback_latency_avg   ns     Average.
--   writeback_latency_p50   ns     Median.
--   writeback_latency_p90   ns     90th percentile.
--   writeback_latency_p99   ns     99th percentile.
--   writeback_latency_sum   ns     Sum.
--   writeback_amount_avg    bytes  Average.
--   writeback_amount_p50    bytes  Median.
--   writeback_amount_p99    bytes  99th percentile.
--   writeback_amount_sum    bytes  Sum.
--   sync_time_sum           ns     Sum of the durations, from call to end.
--   sync_wall_time          ns     Part of sync_time_sum during which no
--                                  earlier request was in flight.
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
    FROM syncline_sync_call
    GROUP BY run
  ),
  -- The latest end of the earlier requests. Only the time after it adds to the
  -- wall time.
  reach AS (
    SELECT
      sync.ts_ns - span.first_ns AS since_ns,
      span.length_ns, sync.ts_ns,
      sync.ts_ns + sync.dur_ns AS end_ns,
      MAX(sync.ts_ns + sync.dur_ns) OVER (
        PARTITION BY sync.run
        ORDER BY sync.ts_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ns,
      sync.dur_ns,
      CASE
        WHEN incomplete IN ('start', 'end') THEN 0
        -- The amount is unknown if only the call was recorded.
        WHEN bios IS NULL THEN 0
        ELSE 1
      END AS whole,
      sync.bios, sync.ret, sync.bytes, sync.syscall_ns, sync.writeback_ns
    FROM syncline_sync_call AS sync
    JOIN span ON span.run = sync.run
  ),
  placed AS (
    SELECT
      cut.blocks,
      since_ns * cut.blocks AS place_ns,
      length_ns,
      CASE
        WHEN dur_ns IS NULL THEN NULL
        WHEN reached_ns IS NULL
        OR reached_ns <= ts_ns THEN dur_ns
        WHEN reached_ns < end_ns THEN end_ns - reached_ns
        ELSE 0
      END AS wall_ns,
      dur_ns, whole,
      CASE WHEN ret < 0 THEN 1 ELSE 0 END AS failed,
      CASE WHEN ret < 0 THEN 0 WHEN bios = 0 THEN whole ELSE 0 END AS empty,
      bytes,
      CASE WHEN whole = 1 THEN bytes END AS amount,
      syscall_ns, writeback_ns
    FROM reach
    CROSS JOIN cut
  ),
  figure AS (
    SELECT
      blocks,
      -- Without the remainder, the division is exact in both engines.
      (place_ns - place_ns % length_ns) / length_ns AS block,
      COUNT(*) AS syncs,
      SUM(failed) AS failed_syncs,
      CAST(SUM(empty) AS DOUBLE) / NULLIF(SUM(whole), 0) AS empty_share,
      AVG(syscall_ns) AS syscall_latency_avg,
      percentile(syscall_ns, 50) AS syscall_latency_p50,
      percentile(syscall_ns, 90) AS syscall_latency_p90,
      percentile(syscall_ns, 99) AS syscall_latency_p99,
      SUM(syscall_ns) AS syscall_latency_sum,
      AVG(writeback_ns) AS writeback_latency_avg,
      percentile(writeback_ns, 50) AS writeback_latency_p50,
      percentile(writeback_ns, 90) AS writeback_latency_p90,
      percentile(writeback_ns, 99) AS writeback_latency_p99,
      SUM(writeback_ns) AS writeback_latency_sum,
      AVG(amount) AS writeback_amount_avg,
      percentile(amount, 50) AS writeback_amount_p50,
      percentile(amount, 99) AS writeback_amount_p99,
      SUM(bytes) AS writeback_amount_sum,
      SUM(dur_ns) AS sync_time_sum,
      SUM(wall_ns) AS sync_wall_time
    FROM placed
    GROUP BY 1, 2
  )
SELECT
  blocks,
  CAST(block AS BIGINT) AS block,
  syncs,
  CAST(failed_syncs AS BIGINT) AS failed_syncs,
  empty_share, syscall_latency_avg, syscall_latency_p50, syscall_latency_p90,
  syscall_latency_p99,
  CAST(syscall_latency_sum AS BIGINT) AS syscall_latency_sum,
  writeback_latency_avg, writeback_latency_p50, writeback_latency_p90,
  writeback_latency_p99,
  CAST(writeback_latency_sum AS BIGINT) AS writeback_latency_sum,
  writeback_amount_avg, writeback_amount_p50, writeback_amount_p99,
  CAST(writeback_amount_sum AS BIGINT) AS writeback_amount_sum,
  CAST(sync_time_sum AS BIGINT) AS sync_time_sum,
  CAST(sync_wall_time AS BIGINT) AS sync_wall_time
FROM figure
ORDER BY blocks, block;
