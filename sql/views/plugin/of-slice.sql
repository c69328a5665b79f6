-- Slice: the request that a slice belongs to, and the bio that it is. The
-- slice of a phase has no number of its own: those around it have.
WITH RECURSIVE
  around AS (
    SELECT id, parent_id, category, arg_set_id, 0 AS steps
    FROM slice
    WHERE id = $slice_id
    UNION ALL
    SELECT
      slice.id, slice.parent_id, slice.category, slice.arg_set_id,
      steps + 1
    FROM around
    JOIN slice ON slice.id = around.parent_id
  )
SELECT
  extract_arg(arg_set_id, 'debug.sync_id') AS sync_id,
  extract_arg(arg_set_id, 'debug.bio_id') AS bio_id
FROM around
WHERE
  category GLOB 'syncline.*'
  AND extract_arg(arg_set_id, 'debug.sync_id') IS NOT NULL
ORDER BY steps
LIMIT 1;
