-- Slow writes of parts of pages to files that existed before the recording.
--
-- Such a write may wait until the kernel has read the page, which this
-- recording does not show: it may as well wait for a lock, or because too much
-- page cache is dirty. A file existed if nobody was seen to create, to truncate
-- or to rename it. Writes that are durable, direct or at the end of the file
-- are left out. One row for a process and a file with at least 10 of them,
-- which took a millisecond or longer each.
--
-- Columns:
--   path    text   The file.
--   writes  count  How many.
--   dur_ns  ns     Their sum.
WITH
  -- Files that the recording cannot call old, or of whose writes it cannot say
  -- why they are slow.
  other_file AS (
    SELECT run, path
    FROM syncline_file_op
    WHERE
      path IS NOT NULL
      AND (created
      OR op IN ('rename', 'link', 'unlink', 'truncate', 'allocate')
      OR flags GLOB '*O_CREAT*'
      OR flags GLOB '*O_TRUNC*'
      OR flags GLOB '*O_APPEND*'
      OR flags GLOB '*O_SYNC*'
      OR flags GLOB '*O_DSYNC*'
      OR flags GLOB '*O_DIRECT'
      OR flags GLOB '*O_DIRECT|*')
    UNION
    SELECT run, to_path FROM syncline_file_op WHERE to_path IS NOT NULL
  ),
  opened AS (
    SELECT run, COALESCE(pid, tid) AS process, path, MIN(ts_ns) AS ts_ns
    FROM syncline_file_op
    WHERE op = 'open' AND COALESCE(ret, 0) >= 0 AND path GLOB '/*'
    GROUP BY run, COALESCE(pid, tid), path
  )
SELECT
  write.path AS path,
  COUNT(*) AS writes,
  CAST(SUM(write.dur_ns) AS BIGINT) AS dur_ns
FROM syncline_file_op AS write
JOIN opened
  ON opened.run = write.run
  AND opened.process = COALESCE(write.pid, write.tid)
  AND opened.path = write.path
LEFT JOIN other_file
  ON other_file.run = write.run
  AND other_file.path = write.path
WHERE
  write.op = 'write'
  AND write.ts_ns > opened.ts_ns
  AND other_file.path IS NULL
  AND write.dur_ns >= 1000000
  AND (write.bytes % 4096 <> 0 OR write.offset_bytes % 4096 <> 0)
  AND COALESCE(write.flags, '') NOT LIKE '%RWF_%'
  AND write.path NOT LIKE '/dev/%'
  AND write.path NOT LIKE '/proc/%'
  AND write.path NOT LIKE '/sys/%'
GROUP BY write.run, opened.process, write.path
HAVING COUNT(*) >= 10
ORDER BY dur_ns DESC, path;
