-- Slow writes: what write() and other changes of files waited for, and for
-- whose work.
--
-- Only waits of at least 1 ms outside of syncs are recorded; a wait for a page
-- that is read is recorded whatever its length. The routes ring-buffer,
-- bpftrace and strace record no waits, but the tracepoint balance_dirty_pages
-- adds the throttling to a recording.
--
-- Narrow: comm wait path waits total_ns max_ns median_ns bytes of_comm
--
-- Columns:
--   comm       text   Name of the thread that waited.
--   wait       text   What for: throttling, inode lock, journal handle, journal
--                     space, journal buffer, page writeback, or page read,
--                     because it changed a part of a page that was not cached.
--   path       text   File whose lock or page cache it needed; `inode N`
--                     without a path. Null for the other kinds, and if
--                     neither is recorded.
--   dev        text   Device; for throttling, the disk.
--   waits      count  Number of waits.
--   total_ns   ns     Sum of their lengths.
--   median_ns  ns     Median length; of an even number, the shorter of the two
--                     in the middle.
--   max_ns     ns     The longest one.
--   at_ns      time   Its start.
--   bytes      bytes  What the threads had made dirty before they had to pause.
--                     Only throttling has it.
--   of_comm    text   Thread whose work it waited for: the holder of the lock,
--                     or one whose sync was in flight for the page cache or
--                     started the commit. Null if none is known.
--   in_sync    count  Waits during a sync of that thread. Null if it is not
--                     known.
--   run        text   Name of the run, if the input holds several.
WITH
  -- Each commit that a sync started, with the commit's times and the thread of
  -- the sync. One of the timer, or for space, is nobody's work.
  committer AS (
    SELECT
      journal.run AS run,
      journal.dev AS dev,
      journal.ts_ns AS ts_ns,
      journal.dur_ns AS dur_ns,
      sync.comm AS comm
    FROM syncline_journal AS journal
    JOIN syncline_sync AS sync
      ON sync.run = journal.run
      AND sync.sync_id = journal.sync_id
  ),
  -- Each wait as 1 ns at its begin, to find the syncs and the commits in flight
  -- then. `tid` is the holder of the lock, by which its syncs are found.
  wait_begin AS (
    SELECT run, wait_id, wait, dev, ino, holder_tid AS tid, ts_ns, 1 AS dur_ns
    FROM syncline_write_wait
  ),
  -- When the first sync without a known end began, of each thread.
  endless AS (
    SELECT run, tid, MIN(ts_ns) AS since_ns
    FROM syncline_sync
    WHERE dur_ns IS NULL
    GROUP BY run, tid
  ),
  -- A row for each wait and each thing that it may be for. `in_sync` is 1 if
  -- that is a sync.
  cause AS (
    -- The holder of the lock. Whether it was in a sync is not known after a
    -- sync of it began that has no known end.
    SELECT
      of!(write_wait, (run, wait_id)),
      holder_comm AS comm,
      CASE
        WHEN endless.since_ns <= write_wait.ts_ns THEN NULL
        ELSE 0
      END AS in_sync
    FROM syncline_write_wait AS write_wait
    LEFT JOIN endless
      ON endless.run = write_wait.run
      AND endless.tid = write_wait.holder_tid
    WHERE wait = 'inode lock' AND holder_tid IS NOT NULL
    UNION ALL
    -- and a row with `in_sync` 1 if it was in a sync (the one above names it),
    SELECT run, wait_id, NULL, 1
    FROM overlaps!(
      (SELECT * FROM wait_begin WHERE wait = 'inode lock'),
      syncline_sync,
      (wait_id),
      (sync_id),
      (run, tid)
    )
    UNION ALL
    -- or syncs of the file whose page cache is under writeback,
    SELECT run, wait_id, comm, 1
    FROM overlaps!(
      (SELECT * FROM wait_begin WHERE wait = 'page writeback'),
      syncline_sync,
      (wait_id),
      (comm),
      (run, dev, ino)
    )
    UNION ALL
    -- or the sync that started the commit in flight.
    SELECT run, wait_id, comm, 1
    FROM overlaps!(
      (
        SELECT *
        FROM wait_begin
        WHERE wait IN ('journal handle', 'journal buffer')
      ),
      committer,
      (wait_id),
      (comm),
      (run, dev)
    )
  ),
  -- One cause for each wait: of several syncs in flight, the first by name.
  one_cause AS (
    SELECT run, wait_id, MIN(comm) AS of_comm, MAX(in_sync) AS in_sync
    FROM cause
    GROUP BY run, wait_id
  ),
  -- All waits, each with its cause if one is known, and a name for its file.
  -- Inodes with the same path, such as those of a rotated file, share a row.
  caused_wait AS (
    SELECT
      write_wait.*,
      COALESCE(path, 'inode ' || CAST(ino AS TEXT)) AS file,
      one_cause.of_comm AS of_comm,
      one_cause.in_sync AS in_sync
    FROM syncline_write_wait AS write_wait
    LEFT JOIN one_cause
      ON one_cause.run = write_wait.run
      AND one_cause.wait_id = write_wait.wait_id
  ),
  -- The waits of each row of the report, from the shortest to the longest, for
  -- the median and the longest one.
  ranked AS (
    SELECT
      *,
      ROW_NUMBER() OVER (
        PARTITION BY run, comm, wait, file, dev, of_comm
        ORDER BY dur_ns, ts_ns DESC, wait_id DESC
      ) AS place,
      COUNT(*) OVER (PARTITION BY run, comm, wait, file, dev, of_comm) AS waits
    FROM caused_wait
  )
SELECT
  comm, wait,
  file AS path,
  dev,
  COUNT(*) AS waits,
  SUM(dur_ns) AS total_ns,
  MAX(CASE WHEN 2 * place IN (waits, waits + 1) THEN dur_ns END) AS median_ns,
  MAX(dur_ns) AS max_ns,
  MAX(CASE WHEN place = waits THEN ts_ns END) AS at_ns,
  SUM(bytes) AS bytes,
  of_comm,
  SUM(in_sync) AS in_sync,
  run
FROM ranked
GROUP BY run, comm, wait, file, dev, of_comm
ORDER BY
  run,
  SUM(dur_ns) DESC,
  comm, wait,
  file NULLS LAST,
  dev NULLS LAST,
  of_comm NULLS LAST;
