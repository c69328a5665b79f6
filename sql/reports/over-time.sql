-- Over time: syncs, amount and latency along the run (figure 6.8a of the
-- thesis).
--
-- Up to 100 buckets over the run (over the longest of several runs). Their
-- width is 1, 2 or 5 times a power of ten. A sync belongs to the bucket in
-- which it begins. Buckets without a sync are shown. Latencies cover the
-- syncs that have one.
--
-- Columns:
--   offset_ns         ns     Start of the bucket, from the first sync.
--   width_ns          ns     Width of the bucket.
--   syncs             count  Number of syncs.
--   empty             count  Number of syncs whose start and end were
--                            recorded, that succeeded and that
--                            caused no bio.
--   bytes             bytes  Bytes written back for them.
--   syscall_avg_ns    ns     Average syscall latency.
--   syscall_max_ns    ns     Maximum syscall latency.
--   writeback_avg_ns  ns     Average writeback latency.
--   writeback_max_ns  ns     Maximum writeback latency.
--   run               text   Name of the run, if the input holds several.
WITH RECURSIVE
  span AS (
    SELECT run, MIN(ts_ns) AS first_ns, MAX(ts_ns) - MIN(ts_ns) AS length_ns
    FROM syncline_sync_call
    GROUP BY run
  ),
  decade AS (
    SELECT CAST(1 AS BIGINT) AS unit
    UNION ALL
    SELECT unit * 10 FROM decade WHERE unit < 100000000000000000
  ),
  width AS (
    SELECT MIN(decade.unit * factor.factor) AS width_ns
    FROM decade
    CROSS JOIN (
      SELECT 1 AS factor
      UNION ALL
      SELECT 2
      UNION ALL
      SELECT 5
    ) AS factor
    WHERE
      decade.unit * factor.factor
      > (SELECT CAST(MAX(length_ns) AS DOUBLE) / 100 FROM span)
  ),
  bucket AS (
    SELECT
      span.run,
      CAST(0 AS BIGINT) AS offset_ns,
      span.length_ns, width.width_ns
    FROM span
    CROSS JOIN width
    UNION ALL
    SELECT run, offset_ns + width_ns, length_ns, width_ns
    FROM bucket
    WHERE offset_ns + width_ns <= length_ns
  ),
  since AS (
    SELECT
      sync.run,
      sync.ts_ns - span.first_ns AS since_ns,
      sync.incomplete, sync.bios, sync.ret, sync.bytes, sync.syscall_ns,
      sync.writeback_ns
    FROM syncline_sync_call AS sync
    JOIN span ON span.run = sync.run
  ),
  counted AS (
    SELECT
      run,
      since_ns - since_ns % width_ns AS offset_ns,
      COUNT(*) AS syncs,
      -- Unknown, not 0, if only calls were recorded.
      CAST(CASE
        WHEN COUNT(bios) > 0 THEN SUM(
          CASE
            WHEN incomplete IN ('start', 'end') THEN 0
            WHEN bios = 0
            AND COALESCE(ret, 0) >= 0 THEN 1
            ELSE 0
          END
        )
      END AS BIGINT) AS empty,
      CAST(SUM(bytes) AS BIGINT) AS bytes,
      COUNT(syscall_ns) AS syscalls,
      CAST(SUM(syscall_ns) AS DOUBLE) AS syscall_ns,
      MAX(syscall_ns) AS syscall_max_ns,
      COUNT(writeback_ns) AS writebacks,
      CAST(SUM(writeback_ns) AS DOUBLE) AS writeback_ns,
      MAX(writeback_ns) AS writeback_max_ns
    FROM since
    CROSS JOIN width
    GROUP BY run, since_ns - since_ns % width_ns
  )
SELECT
  bucket.offset_ns, bucket.width_ns,
  COALESCE(counted.syncs, 0) AS syncs,
  CASE WHEN counted.syncs > 0 THEN counted.empty ELSE 0 END AS empty,
  CASE WHEN counted.syncs > 0 THEN counted.bytes ELSE 0 END AS bytes,
  counted.syscall_ns / NULLIF(counted.syscalls, 0) AS syscall_avg_ns,
  counted.syscall_max_ns,
  counted.writeback_ns / NULLIF(counted.writebacks, 0) AS writeback_avg_ns,
  counted.writeback_max_ns, bucket.run
FROM bucket
LEFT JOIN counted
  ON counted.run = bucket.run
  AND counted.offset_ns = bucket.offset_ns
ORDER BY bucket.run, bucket.offset_ns;
