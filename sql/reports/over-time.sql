-- Over time: syncs, amount and latency along the run (figure 6.8a of the
-- thesis).
--
-- The run (or the longest of several) is divided into up to 100 buckets, whose
-- width is 1, 2 or 5 times a power of ten. A sync belongs to the bucket in
-- which it begins. Buckets without a sync are shown, because a gap is an
-- answer too. Latencies cover the syncs that have one.
--
-- Narrow: offset_ns syncs syscall_avg_ns syscall_max_ns bytes empty
--  writeback_max_ns
--
-- Columns:
--   offset_ns         ns     Start of the bucket, from the first sync.
--   width_ns          ns     Width of the bucket.
--   syncs             count  Number of syncs.
--   empty             count  Number of syncs whose start and end were
--                            recorded, that succeeded and that caused no bio.
--   bytes             bytes  Bytes written back for them.
--   syscall_avg_ns    ns     Average syscall latency.
--   syscall_max_ns    ns     Maximum syscall latency.
--   writeback_avg_ns  ns     Average writeback latency.
--   writeback_max_ns  ns     Maximum writeback latency.
--   run               text   Name of the run, if the input holds several.
WITH RECURSIVE
  -- When the first sync of each run begins, and how much later the last one.
  span AS (
    SELECT run, MIN(ts_ns) AS first_ns, MAX(ts_ns) - MIN(ts_ns) AS length_ns
    FROM syncline_sync_call
    GROUP BY run
  ),
  -- The least width of 1, 2, 5, 10, 20, ... ns with which the longest run has
  -- no more than 100 buckets.
  width AS (
    SELECT MIN(upper) AS width_ns
    FROM decimal_buckets!() AS candidate
    WHERE upper > (SELECT CAST(MAX(length_ns) AS DOUBLE) / 100 FROM span)
  ),
  -- All buckets of each run, so that those without a sync are shown too.
  bucket AS (
    SELECT run, CAST(0 AS BIGINT) AS offset_ns, length_ns, width_ns
    FROM span
    CROSS JOIN width
    UNION ALL
    SELECT run, offset_ns + width_ns, length_ns, width_ns
    FROM bucket
    WHERE offset_ns + width_ns <= length_ns
  ),
  -- The buckets in which a sync began.
  counted AS (
    SELECT
      sync.run,
      ts_ns - first_ns - (ts_ns - first_ns) % width_ns AS offset_ns,
      COUNT(*) AS syncs,
      SUM(is_empty!(sync)) AS empty,
      SUM(bytes) AS bytes,
      AVG(syscall_ns) AS syscall_avg_ns,
      MAX(syscall_ns) AS syscall_max_ns,
      AVG(writeback_ns) AS writeback_avg_ns,
      MAX(writeback_ns) AS writeback_max_ns
    FROM syncline_sync_call AS sync
    JOIN span ON span.run = sync.run
    CROSS JOIN width
    GROUP BY 1, 2
  )
SELECT
  bucket.offset_ns, bucket.width_ns,
  COALESCE(syncs, 0) AS syncs,
  -- 0 without a sync. Null if there are syncs, and it is known of none of them.
  CAST(CASE WHEN syncs > 0 THEN empty ELSE 0 END AS BIGINT) AS empty,
  CAST(CASE WHEN syncs > 0 THEN bytes ELSE 0 END AS BIGINT) AS bytes,
  syscall_avg_ns, syscall_max_ns, writeback_avg_ns, writeback_max_ns, bucket.run
FROM bucket
LEFT JOIN counted
  ON counted.run = bucket.run
  AND counted.offset_ns = bucket.offset_ns
ORDER BY bucket.run, bucket.offset_ns;
