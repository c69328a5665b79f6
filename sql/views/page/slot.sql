-- Slots: counts and sums by bin of time, file and thread.
SELECT
  bin - bin % :step AS bin,
  CASE WHEN file < :files THEN file ELSE :files END AS file,
  CASE WHEN thread < :threads THEN thread ELSE :threads END AS thread,
  COUNT(*) AS syncs,
  SUM(CASE WHEN incomplete IN ('start', 'end') THEN 0 ELSE 1 END) AS whole,
  SUM(
    CASE
      WHEN incomplete IN ('start', 'end') THEN 0
      WHEN bios = 0
      AND COALESCE(ret, 0) >= 0 THEN 1
      ELSE 0
    END
  ) AS empty,
  COUNT(incomplete) AS incomplete,
  COUNT(confidence) AS attributed,
  SUM(CASE WHEN confidence = 'exact' THEN 1 ELSE 0 END) AS exact,
  COUNT(bytes) AS amounts,
  SUM(bytes) AS bytes,
  COUNT(syscall_ns) AS syscalls,
  SUM(syscall_ns) AS syscall_ns,
  MAX(syscall_ns) AS syscall_max_ns,
  COUNT(writeback_ns) AS writebacks,
  SUM(writeback_ns) AS writeback_ns,
  MAX(writeback_ns) AS writeback_max_ns,
  COUNT(journal_ns) AS journals,
  SUM(journal_ns) AS journal_ns,
  MAX(journal_ns) AS journal_max_ns,
  -- Duration of the requests with a known journal wait, for its share.
  SUM(CASE WHEN journal_ns IS NOT NULL THEN dur_ns END) AS journal_dur_ns,
  COUNT(flush_ns) AS flushes,
  SUM(flush_ns) AS flush_ns,
  COUNT(dur_ns) AS timed,
  SUM(dur_ns) AS dur_ns
FROM _page_request
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;
