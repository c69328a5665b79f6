-- Sync: all columns of a request, and its slice.
SELECT syncline_sync.*, found.slice_id
FROM syncline_sync
LEFT JOIN _syncline_plugin_slice AS found
  ON found.sync_id = syncline_sync.sync_id
  AND NOT found.is_bio
WHERE syncline_sync.sync_id = $sync_id
LIMIT 1;
