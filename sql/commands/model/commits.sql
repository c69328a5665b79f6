-- Commits: those of a journal's thread whose start and end are known.
--
-- Columns:
--   commit_id  id    The commit.
--   tid        id    Thread of the journal.
--   dev        text  Device of the file system. Null if unknown.
--   start_ns   time  Its start.
--   end_ns     time  Its end.
--   run        text  Name of the run, if the input holds several.
SELECT
  commit_id,
  tid,
  dev,
  ts_ns AS start_ns,
  ts_ns + dur_ns AS end_ns,
  run
FROM syncline_journal
WHERE
  kind = 'commit'
  AND dur_ns IS NOT NULL
  AND incomplete IS NULL
ORDER BY
  start_ns,
  commit_id;
