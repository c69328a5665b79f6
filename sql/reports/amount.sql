-- Amount: how much syncs write back, as a histogram (figure 6.1 of the thesis).
--
-- Buckets are powers of two and half open: lower_bytes belongs to the bucket,
-- upper_bytes to the next one. The bucket from 0 to 1 byte holds the requests
-- that wrote nothing. The report covers the requests whose start and end were
-- recorded and whose amount is known; those of several runs are counted
-- together.
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
  -- The number of requests of each amount. Most have many, so buckets have few
  -- rows to go over.
  amount AS (
    SELECT bytes, COUNT(*) AS syncs
    FROM syncline_sync AS sync
    WHERE bytes IS NOT NULL AND is_whole!(sync)
    GROUP BY bytes
  ),
  -- Buckets of powers of two. The first holds only 0, the last begins at a PiB.
  bucket AS (
    SELECT CAST(0 AS BIGINT) AS lower_bytes, CAST(1 AS BIGINT) AS upper_bytes
    UNION ALL
    SELECT upper_bytes, upper_bytes * 2
    FROM bucket
    WHERE upper_bytes <= 1125899906842624
  ),
  -- All requests. `least` is the smallest amount above 0.
  total AS (
    SELECT
      SUM(syncs) AS syncs,
      SUM(bytes * syncs) AS bytes,
      MIN(NULLIF(bytes, 0)) AS least,
      MAX(bytes) AS most
    FROM amount
  ),
  -- What each bucket holds, also if that is nothing.
  counted_bucket AS (
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
  CAST(counted_bucket.syncs AS BIGINT) AS syncs,
  share!(counted_bucket.syncs, total.syncs) AS share,
  share!(SUM(counted_bucket.syncs) OVER below, total.syncs) AS cumulative,
  CAST(counted_bucket.bytes AS BIGINT) AS bytes,
  share!(counted_bucket.bytes, total.bytes) AS bytes_share
FROM counted_bucket
CROSS JOIN total
-- Empty buckets are kept from `least` to `most`: a gap says something.
WHERE counted_bucket.syncs > 0 OR (upper_bytes > least AND lower_bytes <= most)
WINDOW below AS (ORDER BY lower_bytes)
ORDER BY lower_bytes;
