-- Stacks with the numbers that they have when several are one: :folds, pairs of
-- the number of stack.sql and the new one, parted by `), (`.
WITH fold(place, folded) AS (VALUES (:folds))
SELECT raw.stack, fold.folded AS place
FROM _page_raw_stack AS raw
JOIN fold ON fold.place = raw.place;
