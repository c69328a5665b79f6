-- The writes and syncs of `outcomes` that are used, in the order of their
-- starts.
--
-- Columns:
--   start_ns         time   Start of the call.
--   duration_ns      ns     How long it took.
--   path             text   Path of its file. Empty for all files of a device.
--   offset           bytes  Place of the write.
--   size             bytes  What was written. 0 of a sync.
--   dirty_bytes      bytes  What was dirty after it, of the whole machine. Null
--                           if unknown.
--   is_sync          flag   It is a sync, and no write.
--   is_direct        flag   A write that bypasses page cache.
--   is_synchronized  flag   A write that is durable when it returns.
--   file_size        bytes  Size of the file before it. Null if unknown.
--   is_datasync      flag   The times of the file need not be durable when it
--                           returns.
SELECT
  ts_ns AS start_ns,
  dur_ns AS duration_ns,
  CASE
    WHEN is_of_all
      THEN ''
    ELSE path
  END AS path,
  offset_bytes AS "offset",
  CASE
    WHEN is_sync
      THEN 0
    ELSE ret
  END AS size,
  CASE
    WHEN NOT is_sync
      THEN 4096 * dirty_pages
  END AS dirty_bytes,
  is_sync,
  is_direct,
  is_synchronized,
  file_size_bytes AS file_size,
  coalesce(is_datasync, FALSE) AS is_datasync
FROM (
  SELECT
    *,
    kind <> 'write' AS is_sync,
    kind = 'sync_inodes' AS is_of_all
  FROM outcomes
  WHERE
    reason IS NULL
)
ORDER BY
  start_ns,
  is_of_all,
  CASE
    WHEN is_of_all
      THEN row_number
    ELSE call_number
  END;
