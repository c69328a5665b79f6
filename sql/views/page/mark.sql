-- Marks, at most :marks, with times relative to the first request of their run.
WITH
  span AS (SELECT run, MIN(ts_ns) AS first_ns FROM syncline_sync GROUP BY run)
SELECT mark.ts_ns - span.first_ns AS since_ns, mark.dur_ns, mark.name, mark.run
FROM syncline_mark AS mark
JOIN span ON span.run = mark.run
ORDER BY mark.run, mark.mark_id
LIMIT :marks;
