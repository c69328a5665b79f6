-- The writes and syncs of `outcomes` that are used, in the order of their
-- starts.
--
-- Columns:
--   start_ns     time   Start of the call.
--   duration_ns  ns     How long it took.
--   kind         text   cached, synchronized, direct, or sync.
--   path         text   Path of its file. Empty for all files of a device.
--   offset       bytes  Place of the write.
--   size         bytes  What was written. 0 of a sync.
--   dirty_bytes  bytes  What was dirty after it, of the whole machine. Null if
--                       unknown.
SELECT
  ts_ns AS start_ns,
  dur_ns AS duration_ns,
  CASE
    WHEN kind IN ('fsync', 'sync_inodes')
      THEN 'sync'
    ELSE kind
  END AS kind,
  CASE
    WHEN kind = 'sync_inodes'
      THEN ''
    ELSE path
  END AS path,
  offset_bytes AS "offset",
  ret AS size,
  4096 * dirty_pages AS dirty_bytes
FROM outcomes
WHERE
  reason IS NULL
ORDER BY
  ts_ns,
  kind = 'sync_inodes',
  CASE
    WHEN kind = 'sync_inodes'
      THEN row_number
    ELSE call_number
  END;
