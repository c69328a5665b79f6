-- Tracks: those whose slices are of Syncline, whatever their kind.
SELECT DISTINCT track_id
FROM slice
WHERE category GLOB 'syncline.*'
ORDER BY track_id;
