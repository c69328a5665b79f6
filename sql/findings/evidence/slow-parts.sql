-- Slow writes of parts of pages to files that may have existed before.
--
-- Such a write may wait until the kernel has read the page, which this
-- recording does not show: it may as well wait for a lock, or because too much
-- page cache is dirty. A file is new if somebody was seen to create, to
-- truncate or to rename it; an open with O_CREAT alone may be of an old one.
-- Writes that are durable, direct or at the end of the file are left out.
--
-- How long a cached write takes depends on the machine and on the tracer, and
-- so does the time between two calls. So a write is slow if it takes at least
-- half of the time to the next call of its thread, and 50 us, because hardly a
-- disk reads faster. One row for a process and a file with at least 10 slow
-- ones, if these are half of its writes of parts.
--
-- Columns:
--   path    text   The file.
--   writes  count  How many took 50 us or longer.
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
      OR flags GLOB '*O_EXCL*'
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
  ),
  part AS (
    SELECT
      write.run AS run,
      opened.process AS process,
      write.path AS path,
      write.dur_ns AS dur_ns,
      COALESCE(place.next_ns - write.ts_ns, write.dur_ns) AS until_next_ns
    FROM syncline_file_op AS write
    JOIN opened
      ON opened.run = write.run
      AND opened.process = COALESCE(write.pid, write.tid)
      AND opened.path = write.path
    JOIN file_order!() AS place
      ON place.is_sync = 0
      AND place.run = write.run
      AND place.id = write.op_id
    LEFT JOIN other_file
      ON other_file.run = write.run
      AND other_file.path = write.path
    WHERE
      write.op = 'write'
      AND write.ts_ns > opened.ts_ns
      AND other_file.path IS NULL
      AND (write.bytes % 4096 <> 0 OR write.offset_bytes % 4096 <> 0)
      AND COALESCE(write.flags, '') NOT LIKE '%RWF_%'
      AND write.path NOT LIKE '/dev/%'
      AND write.path NOT LIKE '/proc/%'
      AND write.path NOT LIKE '/sys/%'
  )
SELECT
  path,
  CAST(SUM(is_long) AS BIGINT) AS writes,
  CAST(SUM(CASE is_long WHEN 1 THEN dur_ns END) AS BIGINT) AS dur_ns
FROM (
  SELECT
    *,
    CASE WHEN dur_ns >= 50000 THEN 1 ELSE 0 END AS is_long,
    CASE WHEN 2 * dur_ns >= until_next_ns THEN 1 ELSE 0 END AS is_most
  FROM part
) AS part
GROUP BY run, process, path
HAVING SUM(is_long * is_most) >= 10 AND 2 * SUM(is_long * is_most) >= COUNT(*)
ORDER BY dur_ns DESC, path;
