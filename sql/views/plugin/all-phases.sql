-- All phases: what the time of all requests went to.
SELECT phase, SUM(dur_ns) AS time_ns
FROM syncline_phase
GROUP BY phase
ORDER BY phase;
