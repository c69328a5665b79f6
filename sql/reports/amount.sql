-- Amount: how much syncs write back, as a histogram (figure 6.1 of the thesis).
--
-- Buckets are powers of two and half open: lower_bytes belongs to the bucket,
-- upper_bytes to the next one. The bucket from 0 to 1 byte holds the syncs that
-- wrote nothing. Covers the requests whose start and end were recorded and
-- whose amount is known.
--
-- Columns:
--   lower_bytes  bytes  Lower bound.
--   upper_bytes  bytes  Upper bound.
--   syncs        count  Number of requests in the bucket.
--   share        bar    Their share of all requests.
--   cumulative   share  Share of the requests below upper_bytes.
--   bytes        bytes  Bytes written back for the requests in the bucket.
--   bytes_share  share  Their share of all bytes.
WITH RECURSIVE
  amount AS (
    SELECT bytes, COUNT(*) AS syncs
    FROM syncline_sync
    WHERE
      bytes IS NOT NULL
      AND (incomplete IS NULL OR incomplete NOT IN ('start', 'end'))
    GROUP BY bytes
  ),
  power AS (
    SELECT CAST(1 AS BIGINT) AS lower_bytes
    UNION ALL
    SELECT lower_bytes * 2 FROM power WHERE lower_bytes < 1125899906842624
  ),
  bucket AS (
    SELECT CAST(0 AS BIGINT) AS lower_bytes, CAST(1 AS BIGINT) AS upper_bytes
    UNION ALL
    SELECT lower_bytes, lower_bytes * 2 FROM power
  ),
  bound AS (
    SELECT
      SUM(syncs) AS syncs,
      SUM(bytes * syncs) AS bytes,
      MIN(CASE WHEN bytes > 0 THEN bytes END) AS least,
      MAX(bytes) AS most
    FROM amount
  ),
  filled AS (
    SELECT
      bucket.lower_bytes, bucket.upper_bytes,
      COALESCE(SUM(amount.syncs), 0) AS syncs,
      COALESCE(SUM(amount.bytes * amount.syncs), 0) AS bytes
    FROM bucket
    LEFT JOIN amount
      ON amount.bytes >= bucket.lower_bytes
      AND amount.bytes < bucket.upper_bytes
    GROUP BY bucket.lower_bytes, bucket.upper_bytes
  )
SELECT
  filled.lower_bytes, filled.upper_bytes,
  CAST(filled.syncs AS BIGINT) AS syncs,
  CAST(filled.syncs AS DOUBLE) / bound.syncs AS share,
  CAST(SUM(filled.syncs) OVER (ORDER BY filled.lower_bytes) AS DOUBLE)
  / bound.syncs AS cumulative,
  CAST(filled.bytes AS BIGINT) AS bytes,
  CAST(filled.bytes AS DOUBLE) / NULLIF(bound.bytes, 0) AS bytes_share
FROM filled
CROSS JOIN bound
-- Empty buckets in between are kept: a gap is a finding.
WHERE
  filled.syncs > 0
  OR (filled.upper_bytes > bound.least AND filled.lower_bytes <= bound.most)
ORDER BY filled.lower_bytes;
