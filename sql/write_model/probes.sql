-- Entries and returns of writes and syncs in a stock kernel's events, the
-- limits of dirty page cache, and where events were lost.
--
-- `events` is a low-level log of the ring buffer. Events of equal times have
-- the order of the log, which is that of the buffer. A loss precedes the
-- event that follows it.
--
-- Columns:
--   part               text   entry, return: of a call. loss: events were lost
--                             before the next row. limits: the limits at this
--                             time.
--   kind               text   write, fsync: of a file. sync_inodes: of all
--                             files of a device.
--   ts_ns              time   Time of the event.
--   tid                id     Its thread.
--   comm               text   Name of the thread.
--   dev                text   Device of the file, as a number.
--   ino                text   Inode of the file.
--   gen                text   Generation of the inode.
--   n0                 text   Name of the file.
--   n1                 text   Name of its folder.
--   n2                 text   Name of the folder of that.
--   n3                 text   Name of the folder of that.
--   offset             bytes  Place of the write.
--   ki_flags           id     How it is written.
--   file_size          bytes  Size of the file before it.
--   ret                count  What the call returned. Null of sync_inodes.
--   nr_dirty           count  Dirty pages of the machine after it.
--   nr_writeback       count  Pages under writeback after it.
--   background_thresh  count  Background limit, in pages.
--   dirty_thresh       count  Hard limit, in pages.
WITH
  numbered AS (
    SELECT
      *,
      rowid AS line,
      -- A loss has no time of its own.
      coalesce(
        ts_ns,
        FIRST_VALUE(ts_ns IGNORE NULLS) OVER (
          ORDER BY rowid
          ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ),
        MAX(ts_ns) OVER ()
      ) AS at_ns
    FROM events
    WHERE
      -- A log of user stacks has the return of a call under the same name.
      source <> 'thesis'
  )
SELECT
  CASE
    WHEN event IN ('write_enter', 'fsync_enter', 'sync_inodes') THEN 'entry'
    WHEN event = 'global_dirty_state' THEN 'limits'
    WHEN event IN ('lost_events', 'unparsed_line') THEN 'loss'
    ELSE 'return'
  END AS part,
  CASE
    WHEN event LIKE 'write%' THEN 'write'
    WHEN event LIKE 'fsync%' THEN 'fsync'
    WHEN event LIKE 'sync%' THEN 'sync_inodes'
  END AS kind,
  ts_ns,
  tid,
  comm,
  dev,
  ino,
  gen,
  n0,
  n1,
  n2,
  n3,
  CASE WHEN event = 'write_enter' THEN CAST("offset" AS BIGINT) END AS "offset",
  ki_flags,
  file_size,
  ret,
  CAST(nr_dirty AS BIGINT) AS nr_dirty,
  CAST(nr_writeback AS BIGINT) AS nr_writeback,
  coalesce(background_thresh, bg_thresh) AS background_thresh,
  coalesce(dirty_thresh, thresh) AS dirty_thresh
FROM numbered
WHERE
  event IN (
    'write_enter', 'write_exit', 'fsync_enter', 'fsync_exit', 'sync_inodes',
    'sync_inodes_end', 'global_dirty_state', 'lost_events', 'unparsed_line'
  )
ORDER BY
  at_ns,
  line;
