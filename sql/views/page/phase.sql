-- Phases by bin of time, file and thread.
SELECT
  bin - bin % :step AS bin,
  CASE WHEN file < :files THEN file ELSE :files END AS file,
  CASE WHEN thread < :threads THEN thread ELSE :threads END AS thread,
  name.place AS phase,
  SUM(phase.dur_ns) AS dur_ns
FROM _page_request AS request
JOIN syncline_sync AS part
  ON part.run = request.run
  AND part.call_sync_id = request.call_sync_id
JOIN syncline_phase AS phase
  ON phase.run = part.run
  AND phase.sync_id = part.sync_id
JOIN _page_phase AS name ON name.phase = phase.phase
GROUP BY 1, 2, 3, 4
HAVING SUM(phase.dur_ns) > 0
ORDER BY 1, 2, 3, 4;
