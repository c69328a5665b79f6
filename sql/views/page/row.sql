-- Rows: all requests, for a page that can hold them.
SELECT
  sync_id, since_ns, dur_ns, file, thread,
  op_place AS op,
  stack_place AS stack,
  syscall_ns, writeback_ns, journal_ns, flush_ns, bytes, ranges, bios,
  CASE WHEN ret < 0 THEN 1 ELSE 0 END AS failed,
  CASE incomplete
    WHEN 'start' THEN 1
    WHEN 'end' THEN 2
    WHEN 'bio' THEN 3
    WHEN 'call' THEN 4
    ELSE 0
  END AS incomplete,
  CAST(confidence = 'exact' AS BIGINT) AS exact
FROM _page_request
ORDER BY run, sync_id;
