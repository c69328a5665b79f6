-- Phases of each request, for a page that can hold all requests. Requests are
-- numbered from 0 in the order of row.sql.
WITH
  request AS (
    SELECT
      run, call_sync_id,
      ROW_NUMBER() OVER (ORDER BY run, sync_id) - 1 AS number
    FROM _page_request
  )
SELECT request.number AS "row", name.place AS phase, SUM(phase.dur_ns) AS dur_ns
FROM request
JOIN syncline_sync AS part
  ON part.run = request.run
  AND part.call_sync_id = request.call_sync_id
JOIN syncline_phase AS phase
  ON phase.run = part.run
  AND phase.sync_id = part.sync_id
JOIN _page_phase AS name ON name.phase = phase.phase
GROUP BY request.number, name.place
HAVING SUM(phase.dur_ns) > 0
ORDER BY request.number, name.place;
