-- Waits: the time in which a sync waited for a commit of a journal's thread.
--
-- Columns:
--   sync_id         id    The sync.
--   transaction_id  id    Transaction of the commit. Null if unknown.
--   start_ns        time  Start of the wait.
--   end_ns          time  End of the wait.
--   run             text  Name of the run, if the input holds several.
SELECT
  sync_id,
  transaction_id,
  ts_ns AS start_ns,
  ts_ns + dur_ns AS end_ns,
  run
FROM syncline_wait
WHERE
  wait IN ('commit wait', 'fast commit wait')
  AND dur_ns IS NOT NULL
ORDER BY
  start_ns,
  sync_id;
