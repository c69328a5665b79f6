-- Stacks with their numbers, by frequency.
SELECT
  stack,
  COUNT(*) AS syncs,
  ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, stack) - 1 AS place
FROM syncline_sync
WHERE stack IS NOT NULL
GROUP BY stack;
