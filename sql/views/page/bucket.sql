-- Buckets: the histogram of a latency, a wait or an amount, by bin of time,
-- file and thread, with the sums that a selection of buckets has. :column is
-- the column of _page_request that holds the bucket.
SELECT
  bin - bin % :step AS bin,
  CASE WHEN file < :files THEN file ELSE :files END AS file,
  CASE WHEN thread < :threads THEN thread ELSE :threads END AS thread,
  :column AS bucket,
  COUNT(*) AS syncs,
  SUM(dur_ns) AS dur_ns,
  SUM(bytes) AS bytes
FROM _page_request
WHERE :column IS NOT NULL
GROUP BY 1, 2, 3, 4
ORDER BY 1, 2, 3, 4;
