-- Waits: the time in which a sync waited for a commit of a journal's thread.
--
-- Columns:
--   sync_id    id    The sync.
--   commit_id  id    The commit.
--   start_ns   time  Start of the wait.
--   end_ns     time  End of the wait.
--   run        text  Name of the run, if the input holds several.
SELECT
  sync_id,
  commit_id,
  ts_ns AS start_ns,
  ts_ns + dur_ns AS end_ns,
  run
FROM syncline_wait
WHERE
  commit_id IS NOT NULL
  AND dur_ns IS NOT NULL
ORDER BY
  start_ns,
  sync_id;
