-- What the call and the bios of a request say of it.

INCLUDE PERFETTO MODULE dev.syncline.bio;

-- Calls from which columns of their requests are derived.
CREATE OR REPLACE PERFETTO TABLE _syncline_related_call AS
SELECT
  extract_arg(arg_set_id, 'debug.sync_id') AS sync_id,
  ts,
  iif(extract_arg(arg_set_id, 'debug.open') IS NULL, dur, NULL) AS dur,
  name AS op,
  extract_arg(arg_set_id, 'debug.stack') AS stack
FROM slice
WHERE
  category = 'syncline.call'
  AND extract_arg(arg_set_id, 'debug.sync_id') IS NOT NULL
  AND extract_arg(arg_set_id, 'debug.full') IS NULL
ORDER BY sync_id;

-- Sums over the bios of a request. Null if one of its bios lacks the value. A
-- size from 1 TiB on, which only a broken log has, could overflow the sum.
CREATE OR REPLACE PERFETTO TABLE _syncline_related_bio AS
WITH
  bio AS (
    SELECT
      sync_id, ts_ns, dur_ns, first_offset, last_offset,
      iif(bytes BETWEEN 0 AND 1099511627775, bytes, NULL) AS size,
      iif(folios BETWEEN 0 AND 1099511627775, folios, NULL) AS folio_count,
      iif(ranges BETWEEN 0 AND 1099511627775, ranges, NULL) AS range_count
    FROM syncline_bio
    WHERE
      sync_id IS NOT NULL
      -- A flush writes no data back.
      AND direction <> 'flush'
  )
SELECT
  sync_id,
  COUNT(*) AS bios,
  iif(COUNT(dur_ns) = COUNT(*), MIN(ts_ns), NULL) AS submit,
  iif(COUNT(dur_ns) = COUNT(*), MAX(ts_ns + dur_ns), NULL) AS complete,
  iif(COUNT(size) = COUNT(*), SUM(size), NULL) AS bytes,
  iif(COUNT(folio_count) = COUNT(*), SUM(folio_count), NULL) AS folios,
  iif(COUNT(range_count) = COUNT(*), SUM(range_count), NULL) AS ranges,
  MIN(iif(last_offset IS NULL, NULL, first_offset)) AS first_offset,
  MAX(iif(first_offset IS NULL, NULL, last_offset)) AS last_offset
FROM bio
GROUP BY sync_id
ORDER BY sync_id;
