-- How many file systems the writes and syncs of files are of that `outcomes`
-- uses.
--
-- Columns:
--   file_systems  count  How many.
SELECT
  COUNT(*) AS file_systems
FROM (
  SELECT DISTINCT dev
  FROM outcomes
  WHERE
    reason IS NULL
    AND kind <> 'sync_inodes'
);
