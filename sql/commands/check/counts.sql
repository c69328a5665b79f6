-- How many files have each verdict: each the worst of its own.
--
-- Columns:
--   verdict  text   ok, violated or cannot tell.
--   files    count  Number of files.
WITH
  file AS (
    SELECT
      run, path,
      MAX(
        CASE verdict WHEN 'violated' THEN 2 WHEN 'cannot tell' THEN 1 ELSE 0 END
      ) AS worst
    FROM _syncline_check_found
    GROUP BY run, path
  )
SELECT
  CASE worst
    WHEN 2 THEN 'violated'
    WHEN 1 THEN 'cannot tell'
    ELSE 'ok'
  END AS verdict,
  COUNT(*) AS files
FROM file
GROUP BY worst
ORDER BY worst;
