-- Cells: the number of counts in a histogram of latency by bin, file and
-- thread. Files from number :files on are merged, as are threads from :threads
-- on, and every :step bins of time.
SELECT COUNT(*) AS cells
FROM (
  SELECT DISTINCT
    bin - bin % :step,
    CASE WHEN file < :files THEN file ELSE :files END,
    CASE WHEN thread < :threads THEN thread ELSE :threads END,
    COALESCE(syscall_bucket, writeback_bucket)
  FROM _page_request
) AS cell;
