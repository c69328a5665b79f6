-- First view: the sync that waited longest, its slice in the timeline, and when
-- the first sync began and the last one ended.
--
-- Both engines run this. The slice of a request begins at its `sync_start`;
-- if only its call is known, with the call.
SELECT
  ts_ns AS start_ns,
  dur_ns AS length_ns,
  COALESCE(start_ns, ts_ns) AS slice_ns,
  ts_ns + dur_ns - COALESCE(start_ns, ts_ns) AS slice_length_ns,
  (SELECT MIN(ts_ns) FROM syncline_sync WHERE dur_ns IS NOT NULL) AS first_ns,
  (SELECT MAX(ts_ns + dur_ns) FROM syncline_sync_call) AS last_ns
FROM syncline_sync_call
WHERE dur_ns IS NOT NULL
ORDER BY dur_ns DESC, sync_id
LIMIT 1;
