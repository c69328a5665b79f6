-- Attribution: the number of requests and bios by confidence.
--
-- `of` is `request` (its least sure relation; one with nothing to attribute, as
-- in the summary, is not counted) or `bio` (its relation to its request; a bio
-- of background writeback has none, and is not counted).
SELECT 'request' AS of, confidence, COUNT(*) AS number
FROM syncline_sync
WHERE
  confidence IS NOT NULL
  AND (bios IS NOT NULL
  OR journal_ns IS NOT NULL
  OR flush_ns IS NOT NULL
  OR (op IS NOT NULL AND start_ns IS NOT NULL))
GROUP BY confidence
UNION ALL
SELECT 'bio', confidence, COUNT(*)
FROM syncline_bio
WHERE confidence IS NOT NULL
GROUP BY confidence
ORDER BY 1 DESC, 2;
