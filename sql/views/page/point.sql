-- Points: one of :every requests, and the :longest ones, for a page that cannot
-- hold all of them.
WITH
  numbered AS (
    SELECT
      sync_id, since_ns, dur_ns, file, thread, op_place, syscall_ns,
      writeback_ns, bytes, ranges, incomplete,
      ROW_NUMBER() OVER in_order - 1 AS place,
      ROW_NUMBER() OVER by_length - 1 AS longest
    FROM _page_request
    WINDOW
      in_order AS (ORDER BY run, sync_id),
      by_length AS (ORDER BY COALESCE(dur_ns, -1) DESC, run, sync_id)
  )
SELECT
  sync_id, since_ns, dur_ns,
  CASE WHEN file < :files THEN file ELSE :files END AS file,
  CASE WHEN thread < :threads THEN thread ELSE :threads END AS thread,
  op_place AS op,
  syscall_ns, writeback_ns, bytes, ranges,
  CASE WHEN place % :every = 0 THEN 1 ELSE 0 END AS sampled,
  CASE WHEN longest < :longest THEN 1 ELSE 0 END AS is_long,
  CASE incomplete
    WHEN 'start' THEN 1
    WHEN 'end' THEN 2
    WHEN 'bio' THEN 3
    WHEN 'call' THEN 4
    ELSE 0
  END AS incomplete
FROM numbered
WHERE place % :every = 0 OR longest < :longest
ORDER BY place;
