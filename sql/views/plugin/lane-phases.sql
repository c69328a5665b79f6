-- Lane phases: the phases of the requests of a thread, in the order of time,
-- and the slices of the requests. A residue in several pieces has no place.
SELECT part.phase, part.ts_ns, part.dur_ns, found.slice_id
FROM syncline_sync AS sync
JOIN syncline_phase AS part ON part.sync_id = sync.sync_id
LEFT JOIN _syncline_plugin_slice AS found
  ON found.sync_id = sync.sync_id
  AND NOT found.is_bio
WHERE
  sync.tid IS $tid
  AND sync.comm IS $comm
  AND part.ts_ns IS NOT NULL
  AND part.dur_ns > 0
ORDER BY part.ts_ns;
