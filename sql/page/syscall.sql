-- Buckets of the syscall latency, by bin of time, file and thread.
SELECT
  bin - bin % :step AS bin,
  CASE WHEN file < :files THEN file ELSE :files END AS file,
  CASE WHEN thread < :threads THEN thread ELSE :threads END AS thread,
  syscall_bucket AS bucket,
  COUNT(*) AS syncs
FROM _page_request
WHERE
  syscall_bucket IS NOT NULL
GROUP BY
  1,
  2,
  3,
  4
ORDER BY
  1,
  2,
  3,
  4;
