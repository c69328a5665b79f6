-- Facts about the run. The columns are those of sql/perfetto/meta.sql.

CREATE OR REPLACE VIEW syncline_meta AS
SELECT key, value, run FROM _syncline_file_meta
UNION ALL
-- A high-level log has requests alone. Reports look here before they call
-- nothing of the rest zero.
SELECT
  fact.key,
  CASE fact.key
    WHEN 'source' THEN 'high-level log'
    WHEN 'input' THEN log.path
    WHEN 'tables' THEN 'syncline_sync'
  END AS value,
  log.run
FROM _syncline_log AS log
CROSS JOIN (
  SELECT 'source' AS key
  UNION ALL
  SELECT 'input'
  UNION ALL
  SELECT 'tables'
) AS fact;
