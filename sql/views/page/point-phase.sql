-- Phases of the :longest longest requests, for a page that cannot hold those of
-- all. They are the requests that point.sql marks as long.
WITH
  long AS (
    SELECT run, sync_id, call_sync_id
    FROM _page_request
    ORDER BY COALESCE(dur_ns, -1) DESC, run, sync_id
    LIMIT :longest
  )
SELECT long.run, long.sync_id, name.place AS phase, SUM(phase.dur_ns) AS dur_ns
FROM long
JOIN syncline_sync AS part
  ON part.run = long.run
  AND part.call_sync_id = long.call_sync_id
JOIN syncline_phase AS phase
  ON phase.run = part.run
  AND phase.sync_id = part.sync_id
JOIN _page_phase AS name ON name.phase = phase.phase
GROUP BY long.run, long.sync_id, name.place
HAVING SUM(phase.dur_ns) > 0
ORDER BY long.run, long.sync_id, name.place;
