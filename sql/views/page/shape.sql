-- Shape: the numbers of requests, files, threads, stacks and bins, in one row.
SELECT
  COUNT(*) AS requests,
  COUNT(DISTINCT file) AS files,
  COUNT(DISTINCT thread) AS threads,
  COUNT(DISTINCT stack_place) AS stacks,
  COUNT(journal_ns) AS journals,
  COUNT(flush_ns) AS flushes,
  MAX(width_ns) AS width_ns,
  MAX(bin) + 1 AS bins,
  MAX(since_ns) AS last_ns,
  MAX(since_ns + COALESCE(dur_ns, 0)) AS end_ns
FROM _page_request;
