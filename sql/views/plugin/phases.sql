-- Phases: what the time of a request went to, in the order of time.
SELECT phase, ts_ns, dur_ns
FROM syncline_phase
WHERE sync_id = $sync_id AND dur_ns > 0
ORDER BY number;
