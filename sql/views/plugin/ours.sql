-- Ours: a row if Syncline wrote the trace.
SELECT 1 AS ours FROM syncline_meta LIMIT 1;
