-- Calls that write or sync in a stock kernel's events, and the reason for each
-- that is not used.
--
-- `writes` is the table of writes that the core pairs, with the number of each
-- row as `file_row_number`: the rows are in the order in which calls returned.
--
-- Two files may have the same last names. The first one to return has them as
-- its path, and the others have their inode too. So has a file without names.
--
-- Parameters: $comm, $path (a prefix) and $device choose calls. Each is null
-- for any.
--
-- Columns:
--   row_number       id     Place in the order of the returns.
--   call_number      id     Place in the order of the starts. Null of a return
--                           without its start.
--   kind             text   write, fsync: of a file. sync_inodes: of all files
--                           of a device.
--   ts_ns            time   Its start.
--   dur_ns           ns     How long it took. Null without one of its ends.
--   dev              id     Device of the file.
--   path             text   Path in the file system, as far as its names were
--                           recorded. No two files of a device have the same.
--   is_direct        flag   A write that bypasses page cache.
--   is_synchronized  flag   A write that is durable when it returns.
--   is_datasync      flag   Of a synchronized write or a sync: data is durable
--                           when it returns, but not the times of the file.
--                           Null if unknown.
--   offset_bytes     bytes  Place of the write.
--   file_size_bytes  bytes  Size of the file before the write. Null if unknown.
--   ret              count  What it returned.
--   dirty_pages      count  Pages of the machine that were dirty or under
--                           writeback after it.
--   reason           text   Why it is not used. Null if it is. loss, no
--                           return, no start, doubtful, late: the core could
--                           not pair it. failed, filter. other device: a sync
--                           of one without a write that is used.
WITH
  whole AS (
    SELECT
      *,
      file_row_number AS row_number,
      unused IS NULL AND kind <> 'sync_inodes' AND ret < 0 AS has_failed
    FROM writes
    WHERE
      part <> 'limits'
  ),
  file AS (
    SELECT
      dev,
      ino,
      generation,
      ARG_MIN(coalesce(path, '.../'), row_number) AS short_path,
      MIN(row_number) AS first_row
    FROM whole
    WHERE
      unused IS NULL
      AND kind <> 'sync_inodes'
      AND NOT has_failed
    GROUP BY
      dev,
      ino,
      generation
  ),
  named AS (
    SELECT
      *,
      CASE
        WHEN short_path IN ('/', '.../')
        OR ROW_NUMBER() OVER (
          PARTITION BY short_path
          ORDER BY first_row
        ) > 1
          THEN concat(
            short_path, ' (inode ', ino, ', generation ', generation, ')'
          )
        ELSE short_path
      END AS full_path
    FROM file
  ),
  chosen AS (
    SELECT
      whole.* EXCLUDE (path),
      named.full_path AS path,
      coalesce(
        ($comm IS NULL OR comm = CAST($comm AS TEXT))
        AND ($path IS NULL OR starts_with(full_path, CAST($path AS TEXT)))
        AND ($device IS NULL OR whole.dev = CAST($device AS BIGINT)),
        FALSE
      ) AS is_chosen
    FROM whole
    LEFT JOIN named
      ON named.dev = whole.dev
      AND named.ino = whole.ino
      AND named.generation = whole.generation
  )
SELECT
  row_number,
  call_number,
  kind,
  ts_ns,
  dur_ns,
  dev,
  path,
  is_direct,
  is_synchronized,
  is_datasync,
  offset_bytes,
  file_size_bytes,
  ret,
  dirty_pages,
  CASE
    WHEN unused IS NOT NULL
      THEN unused
    WHEN has_failed
      THEN 'failed'
    -- sync() looks at all file systems.
    WHEN kind = 'sync_inodes'
    AND dev NOT IN (
      SELECT dev
      FROM chosen
      WHERE
        is_chosen
        AND unused IS NULL
        AND NOT has_failed
        AND kind <> 'sync_inodes'
    )
      THEN 'other device'
    WHEN kind <> 'sync_inodes'
    AND NOT is_chosen
      THEN 'filter'
  END AS reason
FROM chosen;
