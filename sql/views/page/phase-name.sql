-- Names of the phases in the input, numbered from 0.
SELECT phase, ROW_NUMBER() OVER (ORDER BY phase) - 1 AS place
FROM (SELECT DISTINCT phase FROM syncline_phase) AS found;
