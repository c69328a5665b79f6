-- Overwrites of parts of pages, which read the page first.
--
-- Evidence is a file of which a process changed parts of pages that were not
-- cached, so that at least 10 of its writes waited until the kernel had read
-- the page. One row for each process and file. Threads of the kernel are left
-- out.
--
-- Seen: writes waited until the kernel had read the page of which they change
-- a part: {where}.
--
-- Cost: the time in which these writes waited, summed over them. It is not time
-- in syncs.
--
-- Instead: write whole pages that begin at a multiple of the page size, because
-- the kernel reads nothing before it replaces a page; or keep the file cached,
-- for example with posix_fadvise(POSIX_FADV_WILLNEED) before the writes.
--
-- Needs: fact:page_reads
--
-- Not checked: it needs the reads of the thread before its write, which the
-- route dynamic-events records.
--
-- Columns:
--   sync_id   id     Null.
--   ts_ns     time   The first of these waits.
--   comm      text   Name of the thread.
--   path      text   Path of the file. Null if it is not known.
--   cost_ns   ns     Sum of the waits.
--   note      prose  The process, how many of its writes waited, and the bytes
--                    that were read.
--   from_ns   time   Null: the waits are in no sync.
--   until_ns  time   Null.
--   run       text   Name of the run, if the input holds several.
WITH
  page_read AS (
    SELECT
      wait.run AS run,
      wait.ts_ns AS ts_ns,
      wait.dur_ns AS dur_ns,
      COALESCE(wait.pid, wait.tid) AS process,
      wait.comm AS comm,
      wait.dev AS dev,
      wait.ino AS ino,
      wait.path AS path,
      bio.bytes AS bytes
    FROM syncline_write_wait AS wait
    LEFT JOIN syncline_bio AS bio
      ON bio.run = wait.run
      AND bio.bio_id = wait.bio_id
    WHERE
      wait.wait = 'page read'
      AND wait.comm IS NOT NULL
      AND NOT is_kernel_thread!(wait.comm)
  ),
  of_file AS (
    SELECT
      run, process,
      MIN(comm) AS comm,
      MIN(path) AS path,
      MIN(ts_ns) AS ts_ns,
      SUM(dur_ns) AS cost_ns,
      COUNT(*) AS waits,
      CAST(SUM(bytes) AS BIGINT) AS bytes
    FROM page_read
    GROUP BY run, process, dev, ino
  )
SELECT
  CAST(NULL AS BIGINT) AS sync_id,
  ts_ns, comm, path,
  CAST(cost_ns AS BIGINT) AS cost_ns,
  'process ' || CAST(process AS TEXT) || '; writes that waited: '
  || CAST(waits AS TEXT)
  || COALESCE('; bytes read: ' || CAST(bytes AS TEXT), '') AS note,
  CAST(NULL AS BIGINT) AS from_ns,
  CAST(NULL AS BIGINT) AS until_ns,
  run
FROM of_file
WHERE waits >= 10
ORDER BY cost_ns DESC, run, ts_ns;
