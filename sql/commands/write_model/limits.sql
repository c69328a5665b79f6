-- The limits of dirty page cache: the median over the events of `writes` that
-- state them.
--
-- Columns:
--   background_bytes  bytes  Background limit. Null if none was recorded.
--   hard_bytes        bytes  Hard limit. Null if none was recorded.
SELECT
  4096 * CAST(round_even(MEDIAN(background_pages), 0) AS BIGINT)
    AS background_bytes,
  4096 * CAST(round_even(MEDIAN(hard_pages), 0) AS BIGINT) AS hard_bytes
FROM writes
WHERE
  part = 'limits';
