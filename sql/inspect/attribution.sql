-- How surely it is known what belongs to a request.
--
-- `of` is request (the least sure of its edges) or bio (its edge to its
-- request; a bio of background writeback has none, and is not here).
SELECT 'request' AS of, confidence, COUNT(*) AS number
FROM syncline_sync
WHERE
  confidence IS NOT NULL
GROUP BY
  confidence
UNION ALL
SELECT 'bio', confidence, COUNT(*)
FROM syncline_bio
WHERE
  confidence IS NOT NULL
GROUP BY
  confidence
ORDER BY
  1 DESC,
  2;
