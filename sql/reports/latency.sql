-- Latency: how long syncs take, as a histogram (figure 6.1 of the thesis).
--
-- Buckets are logarithmic (1, 2, 5, 10, ...) and half open: lower_ns belongs to
-- the bucket, upper_ns to the next one. The bucket from 0 to 1 ns holds the
-- empty syncs, whose writeback latency is 0. Shares are of the syncs whose
-- latency of that kind is known.
--
-- Narrow: kind lower_ns upper_ns syncs share cumulative
--
-- Columns:
--   kind        text   syscall or writeback.
--   lower_ns    ns     Lower bound.
--   upper_ns    ns     Upper bound.
--   syncs       count  Number of syncs in the bucket.
--   share       bar    Their share of all syncs of that kind.
--   cumulative  share  Share of the syncs below upper_ns.
WITH
  latency(kind, ns) AS (
    SELECT 'syscall', syscall_ns FROM syncline_sync_call
    UNION ALL
    SELECT 'writeback', writeback_ns FROM syncline_sync_call
  ),
  counted AS (
    SELECT kind, decimal_floor!(ns) AS lower_ns, COUNT(*) AS syncs
    FROM latency
    WHERE ns IS NOT NULL
    GROUP BY 1, 2
  ),
  -- From the first bucket to the last one that holds a latency.
  span AS (
    SELECT
      kind,
      SUM(syncs) AS total,
      MIN(NULLIF(lower_ns, 0)) AS first_ns,
      MAX(lower_ns) AS last_ns
    FROM counted
    GROUP BY kind
  ),
  -- Empty buckets in between are kept: a gap is a finding.
  filled AS (
    SELECT
      span.kind, total,
      lower AS lower_ns,
      upper AS upper_ns,
      COALESCE(syncs, 0) AS syncs
    FROM span
    CROSS JOIN decimal_buckets!() AS bucket
    LEFT JOIN counted ON counted.kind = span.kind AND lower_ns = lower
    WHERE syncs > 0 OR lower BETWEEN first_ns AND last_ns
  )
SELECT
  kind, lower_ns, upper_ns, syncs,
  share!(syncs, total) AS share,
  share!(SUM(syncs) OVER below, total) AS cumulative
FROM filled
WINDOW below AS (PARTITION BY kind ORDER BY lower_ns)
ORDER BY kind, lower_ns;
