-- Facts about the run. The columns are those of sql/tables/perfetto/meta.sql.

CREATE OR REPLACE VIEW syncline_meta AS
SELECT key, value, run FROM _syncline_file_meta
UNION ALL
-- A high-level log has only requests, and a folder may lack tables. Reports
-- read `tables` to show null instead of 0 for the others.
SELECT
  fact.key,
  CASE fact.key
    WHEN 'source' THEN 'high-level log'
    WHEN 'input' THEN log.path
    WHEN 'tables' THEN log.tables
  END AS value,
  log.run
FROM _syncline_log AS log
CROSS JOIN (
  SELECT 'source' AS key
  UNION ALL
  SELECT 'input'
  UNION ALL
  SELECT 'tables'
) AS fact
WHERE fact.key = 'tables' OR log.path IS NOT NULL
UNION ALL
-- Columns of requests that no file has. They are null.
SELECT 'missing_columns', columns, run FROM _syncline_lacks;
