-- Stacks with the numbers that they have after several were merged. :folds are
-- pairs of the number in raw-stack.sql and the new one, separated by `), (`.
WITH fold(place, folded) AS (VALUES (:folds))
SELECT raw.stack, fold.folded AS place
FROM _page_raw_stack AS raw
JOIN fold ON fold.place = raw.place;
