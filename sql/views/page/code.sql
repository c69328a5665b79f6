-- Stacks by bin of time, file and thread. Stacks from number :stacks on are
-- merged; -1 is a request without a stack.
SELECT
  bin - bin % :step AS bin,
  CASE WHEN file < :files THEN file ELSE :files END AS file,
  CASE WHEN thread < :threads THEN thread ELSE :threads END AS thread,
  CASE
    WHEN stack_place IS NULL THEN -1
    WHEN stack_place < :stacks THEN stack_place
    ELSE :stacks
  END AS stack,
  COUNT(*) AS syncs,
  SUM(syscall_ns) AS syscall_ns,
  SUM(writeback_ns) AS writeback_ns,
  SUM(journal_ns) AS journal_ns,
  SUM(flush_ns) AS flush_ns,
  SUM(bytes) AS bytes
FROM _page_request
GROUP BY 1, 2, 3, 4
ORDER BY 1, 2, 3, 4;
