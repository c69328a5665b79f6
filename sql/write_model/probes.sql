-- Writes and syncs that a stock kernel's events show, and the limits of dirty
-- page cache.
--
-- `events` is a low-level log of the ring buffer. A synchronized write calls a
-- sync function, which is no sync of its own.
--
-- Columns:
--   part               text   write, sync: all of it is known. sync all: the
--                             same, of all files of a device. entry: its return
--                             is not recorded. return: its entry is not
--                             recorded. limits: the limits at this time.
--   start_ns           time   Start of the call.
--   dur_ns             ns     How long it took.
--   comm               text   Name of its thread.
--   dev                text   Device of its file, as a number.
--   ino                text   Inode of its file.
--   gen                text   Generation of the inode.
--   n0                 text   Name of the file.
--   n1                 text   Name of its folder.
--   n2                 text   Name of the folder of that.
--   n3                 text   Name of the folder of that.
--   offset             bytes  Place of the write.
--   ki_flags           id     How it is written.
--   file_size          bytes  Size of the file before it.
--   ret                count  What the call returned. Null of sync all.
--   nr_dirty           count  Dirty pages of the machine after it.
--   nr_writeback       count  Pages under writeback after it.
--   background_thresh  count  Background limit, in pages.
--   dirty_thresh       count  Hard limit, in pages.
WITH
  call AS (
    SELECT
      *,
      left(event, 5) AS kind,
      event LIKE 'write%' AS is_write,
      event IN ('write_enter', 'fsync_enter', 'sync_inodes') AS is_entry
    FROM events
    WHERE
      event IN (
        'write_enter', 'write_exit', 'fsync_enter', 'fsync_exit', 'sync_inodes',
        'sync_inodes_end'
      )
      -- A log of user stacks has the return of the call under the same name.
      AND source <> 'thesis'
  ),
  nested AS (
    SELECT
      *,
      LAST_VALUE(CASE WHEN is_write THEN is_entry END IGNORE NULLS) OVER (
        PARTITION BY tid
        ORDER BY ts_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS in_write
    FROM call
  ),
  paired AS (
    SELECT
      *,
      LAG(is_entry) OVER in_order AS follows_entry,
      LEAD(is_entry) OVER in_order AS before_entry,
      LEAD(ts_ns) OVER in_order - ts_ns AS until_next_ns,
      LEAD(ret) OVER in_order AS returned,
      LEAD(nr_dirty) OVER in_order AS dirty_after,
      LEAD(nr_writeback) OVER in_order AS writeback_after
    FROM nested
    WHERE
      is_write
      OR in_write IS DISTINCT FROM TRUE
    WINDOW
      in_order AS (PARTITION BY tid, kind ORDER BY ts_ns)
  )
SELECT
  CASE
    WHEN NOT is_entry THEN 'return'
    WHEN before_entry IS DISTINCT FROM FALSE THEN 'entry'
    WHEN event = 'sync_inodes' THEN 'sync all'
    WHEN is_write THEN 'write'
    ELSE 'sync'
  END AS part,
  ts_ns AS start_ns,
  until_next_ns AS dur_ns,
  comm,
  dev,
  ino,
  gen,
  n0,
  n1,
  n2,
  n3,
  CASE WHEN is_write THEN CAST("offset" AS BIGINT) END AS "offset",
  ki_flags,
  file_size,
  returned AS ret,
  CAST(dirty_after AS BIGINT) AS nr_dirty,
  CAST(writeback_after AS BIGINT) AS nr_writeback,
  NULL AS background_thresh,
  NULL AS dirty_thresh
FROM paired
WHERE
  is_entry
  OR follows_entry IS DISTINCT FROM TRUE
UNION ALL
SELECT
  'limits',
  ts_ns,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  coalesce(background_thresh, bg_thresh),
  coalesce(dirty_thresh, thresh)
FROM events
WHERE
  event = 'global_dirty_state'
ORDER BY
  start_ns;
