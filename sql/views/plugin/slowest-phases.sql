-- Slowest phases: the phases of the syncs that waited longest, in the order of
-- time. A residue in several pieces has no place.
WITH
  slowest AS (
    SELECT sync_id, call_sync_id
    FROM syncline_sync_call
    WHERE dur_ns IS NOT NULL
    ORDER BY dur_ns DESC, sync_id
    LIMIT $most
  )
SELECT slowest.sync_id, part.phase, part.ts_ns, part.dur_ns
FROM slowest
JOIN syncline_sync AS request USING (call_sync_id)
JOIN syncline_phase AS part ON part.sync_id = request.sync_id
WHERE part.dur_ns > 0
ORDER BY slowest.sync_id, part.ts_ns;
