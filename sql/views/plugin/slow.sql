-- Slow: the slowest hundredth of the requests, at least 20 of them, in the
-- order of time, and their slices.
SELECT ts_ns, dur_ns, slice_id
FROM (
  SELECT
    sync_id, ts_ns, dur_ns,
    ROW_NUMBER() OVER (ORDER BY dur_ns DESC, sync_id) AS place,
    COUNT(*) OVER () AS syncs
  FROM syncline_sync_call
  WHERE dur_ns IS NOT NULL
) AS ranked
JOIN _syncline_plugin_slice AS found
  ON found.sync_id = ranked.sync_id
  AND NOT found.is_bio
WHERE place <= 20 OR place * 100 <= syncs
ORDER BY ts_ns, ranked.sync_id;
