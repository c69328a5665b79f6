-- Slowest parts: the phases of the 20 syncs that waited longest, as slices. A
-- residue in several pieces has no place.
SELECT
  part.ts_ns AS ts,
  part.dur_ns AS dur,
  iif(part.phase = 'residue', 'not explained', part.phase) AS name
FROM (
  SELECT call_sync_id
  FROM syncline_sync_call
  WHERE dur_ns IS NOT NULL
  ORDER BY dur_ns DESC, sync_id
  LIMIT 20
) AS slowest
JOIN syncline_sync AS request USING (call_sync_id)
JOIN syncline_phase AS part ON part.sync_id = request.sync_id
WHERE part.ts_ns IS NOT NULL AND part.dur_ns > 0
ORDER BY part.ts_ns;
