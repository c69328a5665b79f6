-- Syncs: the requests that a replay repeats.
--
-- Covers requests whose start, end and thread are known.
--
-- Columns:
--   sync_id   id    The request.
--   tid       id    Its thread.
--   comm      text  Name of the thread.
--   path      text  Path of the file.
--   dev       text  Device of the file.
--   start_ns  time  Entry of its call.
--   end_ns    time  Its end.
--   run       text  Name of the run, if the input holds several.
SELECT
  sync_id,
  tid,
  comm,
  path,
  dev,
  ts_ns AS start_ns,
  ts_ns + dur_ns AS end_ns,
  run
FROM syncline_sync
WHERE
  dur_ns IS NOT NULL
  AND tid IS NOT NULL
ORDER BY
  start_ns,
  sync_id;
