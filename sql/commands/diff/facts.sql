-- Facts: what must be the same on both sides of a diff, and what was lost.
--
-- Columns:
--   fact   text  A key of syncline_meta; or fs (a file system); or mark (the
--                name of a mark); or loss.REASON (number of occurrences, if
--                something is missing from the statistics); or known.WHAT
--                (number of requests in which it is known); or identity
--                (differs between any two runs, and is the same for all forms
--                of one run: number of requests, first and last start, time and
--                bytes; absent without a request).
--   value  text  Its value.
SELECT fact, value
FROM (
  SELECT key AS fact, value FROM syncline_meta
  UNION ALL
  SELECT DISTINCT 'fs', fs FROM syncline_sync WHERE fs IS NOT NULL
  UNION ALL
  SELECT DISTINCT 'mark', name FROM syncline_mark
  UNION ALL
  SELECT 'loss.' || reason, CAST(SUM(count) AS TEXT)
  FROM syncline_loss
  WHERE severity = 'loss'
  GROUP BY reason
  UNION ALL
  SELECT 'known.syncs', CAST(COUNT(*) AS TEXT) FROM syncline_sync
  UNION ALL
  SELECT 'known.file', CAST(COUNT(path) AS TEXT) FROM syncline_sync
  UNION ALL
  SELECT 'known.thread', CAST(COUNT(comm) AS TEXT) FROM syncline_sync
  UNION ALL
  SELECT 'known.stack', CAST(COUNT(stack) AS TEXT) FROM syncline_sync
  UNION ALL
  SELECT
    'identity',
    CAST(COUNT(*) AS TEXT) || ' ' || CAST(MIN(ts_ns) AS TEXT) || ' '
    || CAST(MAX(ts_ns) AS TEXT)
    || ' '
    || COALESCE(CAST(SUM(dur_ns) AS TEXT), '-')
    || ' '
    || COALESCE(CAST(SUM(bytes) AS TEXT), '-')
  FROM syncline_sync
  HAVING COUNT(*) > 0
)
ORDER BY fact, value;
