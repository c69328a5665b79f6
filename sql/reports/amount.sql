-- Amount: how much syncs write back, as a histogram (figure 6.1 of the thesis).
--
-- Buckets are powers of two and half open: lower_bytes belongs to the bucket,
-- upper_bytes to the next one. The bucket from 0 to 1 byte holds the syncs
-- that wrote nothing. The report covers the requests whose start and end were
-- recorded and whose amount is known.
--
-- Narrow: lower_bytes upper_bytes syncs share cumulative bytes bytes_share
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
  -- How often each amount occurs. Most do many times, so buckets have few rows
  -- to go over.
  amount AS (
    SELECT bytes, COUNT(*) AS syncs
    FROM syncline_sync AS sync
    WHERE bytes IS NOT NULL AND is_whole!(sync)
    GROUP BY bytes
  ),
  -- Buckets of powers of two, up to a PiB. The first one has 0.
  bucket AS (
    SELECT CAST(0 AS BIGINT) AS lower_bytes, CAST(1 AS BIGINT) AS upper_bytes
    UNION ALL
    SELECT upper_bytes, upper_bytes * 2
    FROM bucket
    WHERE upper_bytes <= 1125899906842624
  ),
  total AS (
    SELECT
      SUM(syncs) AS syncs,
      SUM(bytes * syncs) AS bytes,
      MIN(NULLIF(bytes, 0)) AS least,
      MAX(bytes) AS most
    FROM amount
  ),
  -- What each bucket holds, also if that is nothing.
  filled AS (
    SELECT
      lower_bytes, upper_bytes,
      COALESCE(SUM(syncs), 0) AS syncs,
      COALESCE(SUM(bytes * syncs), 0) AS bytes
    FROM bucket
    LEFT JOIN amount ON bytes >= lower_bytes AND bytes < upper_bytes
    GROUP BY lower_bytes, upper_bytes
  )
SELECT
  lower_bytes, upper_bytes,
  CAST(filled.syncs AS BIGINT) AS syncs,
  share!(filled.syncs, total.syncs) AS share,
  share!(SUM(filled.syncs) OVER below, total.syncs) AS cumulative,
  CAST(filled.bytes AS BIGINT) AS bytes,
  share!(filled.bytes, total.bytes) AS bytes_share
FROM filled
CROSS JOIN total
-- Empty buckets in between are kept: a gap is a finding.
WHERE filled.syncs > 0 OR (upper_bytes > least AND lower_bytes <= most)
WINDOW below AS (ORDER BY lower_bytes)
ORDER BY lower_bytes;
