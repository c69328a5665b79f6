-- Latency: how long syncs take, as a histogram (figure 6.1 of the thesis).
--
-- Buckets are logarithmic (1, 2, 5, 10, ...) and half open: lower_ns belongs to
-- the bucket, upper_ns to the next one. The bucket from 0 to 1 ns holds the
-- empty syncs, whose writeback latency is 0. Shares are of the syncs whose
-- latency of that kind is known.
--
-- Columns:
--   kind        text   syscall or writeback.
--   lower_ns    ns     Lower bound.
--   upper_ns    ns     Upper bound.
--   syncs       count  Number of syncs in the bucket.
--   share       bar    Their share of all syncs of that kind.
--   cumulative  share  Share of the syncs below upper_ns.
WITH RECURSIVE
  latency AS (
    SELECT 'syscall' AS kind, syscall_ns AS ns
    FROM syncline_sync_call
    WHERE syscall_ns IS NOT NULL
    UNION ALL
    SELECT 'writeback' AS kind, writeback_ns AS ns
    FROM syncline_sync_call
    WHERE writeback_ns IS NOT NULL
  ),
  -- The decimal digits give the exact bucket. A logarithm would round.
  counted AS (
    SELECT
      kind,
      CASE WHEN ns < 1 THEN 0 ELSE LENGTH(CAST(ns AS VARCHAR)) END AS digits,
      CASE
        WHEN ns < 1 THEN 0
        WHEN SUBSTR(CAST(ns AS VARCHAR), 1, 1) < '2' THEN 1
        WHEN SUBSTR(CAST(ns AS VARCHAR), 1, 1) < '5' THEN 2
        ELSE 5
      END AS lead,
      COUNT(*) AS syncs
    FROM latency
    GROUP BY 1, 2, 3
  ),
  decade AS (
    SELECT 1 AS digits, CAST(1 AS BIGINT) AS unit
    UNION ALL
    SELECT digits + 1, unit * 10 FROM decade WHERE digits < 18
  ),
  bucket AS (
    SELECT
      0 AS digits,
      0 AS lead,
      CAST(0 AS BIGINT) AS lower_ns,
      CAST(1 AS BIGINT) AS upper_ns
    UNION ALL
    SELECT digits, 1, unit, unit * 2 FROM decade
    UNION ALL
    SELECT digits, 2, unit * 2, unit * 5 FROM decade
    UNION ALL
    SELECT digits, 5, unit * 5, unit * 10 FROM decade
  ),
  bound AS (
    SELECT
      counted.kind,
      SUM(counted.syncs) AS total,
      MIN(CASE WHEN bucket.lower_ns > 0 THEN bucket.lower_ns END) AS first_ns,
      MAX(bucket.lower_ns) AS last_ns
    FROM counted
    JOIN bucket ON bucket.digits = counted.digits AND bucket.lead = counted.lead
    GROUP BY counted.kind
  ),
  -- Empty buckets in between are kept: a gap is a finding.
  filled AS (
    SELECT
      bound.kind, bound.total, bucket.lower_ns, bucket.upper_ns,
      COALESCE(counted.syncs, 0) AS syncs
    FROM bound
    CROSS JOIN bucket
    LEFT JOIN counted
      ON counted.kind = bound.kind
      AND counted.digits = bucket.digits
      AND counted.lead = bucket.lead
    WHERE
      counted.syncs > 0
      OR bucket.lower_ns BETWEEN bound.first_ns AND bound.last_ns
  )
SELECT
  kind, lower_ns, upper_ns, syncs,
  CAST(syncs AS DOUBLE) / total AS share,
  CAST(SUM(syncs) OVER below AS DOUBLE) / total AS cumulative
FROM filled
WINDOW below AS (PARTITION BY kind ORDER BY lower_ns)
ORDER BY kind, lower_ns;
