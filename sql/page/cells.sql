-- Cells: how many counts a histogram of latency by bin, file and thread holds,
-- with the files from :files and the threads from :threads on put together, and
-- :step bins of time, too.
SELECT COUNT(*) AS cells
FROM (
  SELECT DISTINCT
    bin - bin % :step,
    CASE WHEN file < :files THEN file ELSE :files END,
    CASE WHEN thread < :threads THEN thread ELSE :threads END,
    COALESCE(syscall_bucket, writeback_bucket)
  FROM _page_request
) AS cell;
