-- Where the evidence of a finding is: the threads and folders with most of it.
WITH
  evidence AS (SELECT :evidence),
  placed AS (
    SELECT DISTINCT
      run,
      -- Evidence without a sync has its time instead, negative so that it
      -- equals no sync_id.
      COALESCE(sync_id, -ts_ns) AS sync_id,
      comm, path,
      -- The path without what follows its last slash.
      RTRIM(path, REPLACE(path, '/', '')) AS folder
    FROM evidence
  ),
  counted AS (
    SELECT
      comm, folder,
      COUNT(*) AS syncs,
      COUNT(DISTINCT path) AS files,
      MIN(path) AS path
    FROM placed
    GROUP BY comm, folder
  )
SELECT
  comm,
  CASE WHEN files = 1 THEN path ELSE folder END AS place,
  syncs,
  COUNT(*) OVER () AS places
FROM counted
ORDER BY syncs DESC, comm NULLS LAST, place NULLS LAST
LIMIT 3;
