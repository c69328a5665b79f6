-- Latencies: when each request began and how long it took.
SELECT ts_ns, dur_ns
FROM syncline_sync_call
WHERE dur_ns IS NOT NULL
ORDER BY ts_ns, sync_id;
