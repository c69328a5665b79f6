-- The flushes of devices, before a bio or of their own, and those of file
-- systems, for which the thread of a sync waits, without those that failed.
--
-- Result: a row a flush, with
--   run
--   place      What `place_dev` is of: a device, or a file system.
--   place_dev  Major and minor number of the device, or of that of the file
--              system. They may differ.
--   at_ns      Its end, at which it is known. Null if that is not recorded.
--   value_ns   Its begin: what was complete then is on the medium.
--
-- Example: SELECT place, COUNT(*) FROM flushes!(bio) GROUP BY place
CREATE PERFETTO MACRO flushes(
  -- Table of bios with `run`, `dev`, `ts_ns`, `end_ns`, `error`, `has_flush`.
  bios TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT
    run,
    'device' AS place,
    dev AS place_dev,
    end_ns AS at_ns,
    ts_ns AS value_ns
  FROM $bios
  WHERE has_flush AND COALESCE(error, 0) >= 0
  UNION ALL
  SELECT wait.run, 'file system', sync.dev, wait.ts_ns + wait.dur_ns, wait.ts_ns
  FROM syncline_wait AS wait
  JOIN syncline_sync AS sync USING (run, sync_id)
  WHERE wait.wait = 'flush'
);
