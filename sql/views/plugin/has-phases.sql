-- Has phases: a row if the recording has phases.
SELECT 1 AS phases FROM syncline_phase LIMIT 1;
