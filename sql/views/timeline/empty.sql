-- Empty: syncs that caused no bio, as slices named by file.
SELECT ts_ns AS ts, dur_ns AS dur, COALESCE(path, what, op, 'sync') AS name
FROM syncline_sync_call
WHERE bios = 0 AND dur_ns IS NOT NULL
ORDER BY ts_ns, sync_id;
