-- Start of the first request of each run, in the clock of its log.
SELECT run, MIN(ts_ns) AS first_ns FROM syncline_sync GROUP BY run ORDER BY run;
