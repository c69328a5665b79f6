-- Lane phases: the phases of the requests of a thread, in the order of time. A
-- residue in several pieces has no place.
SELECT part.phase, part.ts_ns, part.dur_ns
FROM syncline_sync AS sync
JOIN syncline_phase AS part ON part.sync_id = sync.sync_id
WHERE
  sync.tid IS $tid
  AND sync.comm IS $comm
  AND part.ts_ns IS NOT NULL
  AND part.dur_ns > 0
ORDER BY
  part.ts_ns;
