-- Slow writes: what write() and other changes of files waited for, and for
-- whose work.
--
-- Only waits of at least 1 ms outside of syncs are recorded. The routes
-- ring-buffer, bpftrace and strace record none; a recording with the tracepoint
-- balance_dirty_pages has the throttling.
--
-- Columns:
--   comm       text   Name of the thread that waited.
--   wait       text   What for: throttling, inode lock, journal handle, journal
--                     space, journal buffer, page writeback.
--   path       text   File whose lock or page cache it needed; `inode N`
--                     without a path. Null for the other kinds.
--   dev        text   Device. Of throttling, the disk.
--   waits      count  Number of waits.
--   total_ns   ns     Sum of their lengths.
--   median_ns  ns     Median length. Of an even number, the shorter of the two
--                     in the middle.
--   max_ns     ns     The longest one.
--   at_ns      time   Its start.
--   bytes      bytes  What the threads had made dirty before they had to pause.
--                     Only throttling has it.
--   of_comm    text   Thread whose work it waited for: the holder of the lock,
--                     or one whose sync was in flight for the page cache or
--                     had the commit made. Null if none is known.
--   in_sync    count  Waits during a sync of that thread. Null if it is not
--                     known.
--   run        text   Name of the run, if the input holds several.
WITH
  -- Syncs that waited for each commit of a journal's thread, the first one.
  committed AS MATERIALIZED (
    SELECT *
    FROM (
      SELECT
        journal.run AS run,
        journal.dev AS dev,
        journal.ts_ns AS begin_ns,
        journal.ts_ns + journal.dur_ns AS end_ns,
        sync.comm AS comm,
        ROW_NUMBER() OVER (
          PARTITION BY journal.run, journal.commit_id
          ORDER BY wait.ts_ns, sync.sync_id
        ) AS place
      FROM syncline_journal AS journal
      JOIN syncline_wait AS wait
        ON wait.run = journal.run
        AND wait.commit_id = journal.commit_id
      JOIN syncline_sync AS sync
        ON sync.run = wait.run
        AND sync.sync_id = wait.sync_id
      WHERE journal.dur_ns IS NOT NULL
    ) AS waiting
    WHERE place = 1
  ),
  found AS (
    -- The holder of the lock, and its sync.
    SELECT
      w.run AS run,
      w.wait_id AS wait_id,
      w.holder_comm AS comm,
      sync.sync_id AS sync_id
    FROM syncline_write_wait AS w
    LEFT JOIN syncline_sync AS sync
      ON sync.run = w.run
      AND sync.tid = w.holder_tid
      AND sync.ts_ns <= w.ts_ns
      AND sync.ts_ns + sync.dur_ns > w.ts_ns
    WHERE w.wait = 'inode lock' AND w.holder_tid IS NOT NULL
    UNION ALL
    -- Syncs of the file whose page cache is under writeback.
    SELECT w.run, w.wait_id, sync.comm, sync.sync_id
    FROM syncline_write_wait AS w
    JOIN syncline_sync AS sync
      ON sync.run = w.run
      AND sync.dev = w.dev
      AND sync.ino = w.ino
      AND sync.ts_ns <= w.ts_ns
      AND sync.ts_ns + sync.dur_ns > w.ts_ns
    WHERE w.wait = 'page writeback'
    UNION ALL
    -- A sync that had the commit made.
    SELECT w.run, w.wait_id, committed.comm, 0
    FROM syncline_write_wait AS w
    JOIN committed
      ON committed.run = w.run
      AND committed.dev = w.dev
      AND committed.begin_ns <= w.ts_ns
      AND committed.end_ns > w.ts_ns
    WHERE w.wait IN ('journal handle', 'journal buffer')
  ),
  by_wait AS MATERIALIZED (
    SELECT
      run, wait_id,
      MIN(comm) AS comm,
      MAX(CASE WHEN sync_id IS NULL THEN 0 ELSE 1 END) AS in_sync
    FROM found
    GROUP BY run, wait_id
  ),
  -- The windows below have the columns by which the result is grouped. A path
  -- may have several inodes: a file that was renamed, or rotated.
  named AS (
    SELECT
      w.run AS run,
      w.wait_id AS wait_id,
      w.comm AS comm,
      w.wait AS wait,
      COALESCE(w.path, 'inode ' || CAST(w.ino AS VARCHAR)) AS path,
      w.dev AS dev,
      w.ts_ns AS ts_ns,
      w.dur_ns AS dur_ns,
      w.bytes AS bytes,
      cause.comm AS of_comm,
      cause.in_sync AS in_sync
    FROM syncline_write_wait AS w
    LEFT JOIN by_wait AS cause
      ON cause.run = w.run
      AND cause.wait_id = w.wait_id
  ),
  ranked AS (
    SELECT
      *,
      ROW_NUMBER() OVER (
        PARTITION BY run, comm, wait, path, dev, of_comm
        ORDER BY dur_ns DESC, ts_ns, wait_id
      ) AS place,
      COUNT(*) OVER (PARTITION BY run, comm, wait, path, dev, of_comm) AS number
    FROM named
  )
SELECT
  comm, wait, path, dev,
  COUNT(*) AS waits,
  SUM(dur_ns) AS total_ns,
  -- The longest one has place 1.
  MAX(CASE WHEN number - 2 * place IN (-2, -1) THEN dur_ns END) AS median_ns,
  MAX(dur_ns) AS max_ns,
  MAX(CASE WHEN place = 1 THEN ts_ns END) AS at_ns,
  SUM(bytes) AS bytes,
  of_comm,
  SUM(in_sync) AS in_sync,
  run
FROM ranked
GROUP BY run, comm, wait, path, dev, of_comm
ORDER BY
  run,
  SUM(dur_ns) DESC,
  comm, wait,
  path NULLS LAST,
  dev NULLS LAST,
  of_comm NULLS LAST;
