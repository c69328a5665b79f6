-- Facts: what has to be alike on both sides of a diff, and what was lost.
--
-- Columns:
--   fact   text  A key of syncline_meta; fs (a file system), mark (a name of a
--                mark), loss.REASON (how often, where something is missing
--                from the statistics), known.WHAT (of how many requests it is
--                known), or identity (what no two runs have in common, and all
--                forms of one run: how many requests, the first and the last
--                beginning, time and bytes; none without a request).
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
  WHERE
    severity = 'loss'
  GROUP BY
    reason
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
  HAVING
    COUNT(*) > 0
)
ORDER BY
  fact,
  value;
