-- The latest flush that ended before a sync did: of a device that has data of
-- it, or of its file system.
--
-- Result: a row for each sync and device, with
--   run, sync_id, dev  Of `data`.
--   begin_ns  The latest begin of such a flush: what was complete then is on
--             the medium. Null if there was none.
--   end_ns    The latest end. Null likewise.
--
-- Example: SELECT sync_id, begin_ns FROM latest_flush!(data, bio)
CREATE PERFETTO MACRO latest_flush(
  -- Table of syncs and the devices of their data, with `run`, `sync_id`, `dev`,
  -- `file_system`, the device of the file system, and `sync_end_ns`.
  data TableOrSubquery,
  -- Table of bios as for flushes!.
  bios TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _sync_end AS (
      SELECT
        run, sync_id, dev,
        'device' AS place,
        dev AS place_dev,
        sync_end_ns AS at_ns
      FROM $data
      UNION ALL
      SELECT run, sync_id, dev, 'file system', file_system, sync_end_ns
      FROM $data
    )
  SELECT run, sync_id, dev, MAX(value_ns) AS begin_ns, MAX(fact_ns) AS end_ns
  FROM latest_until!(
    _sync_end,
    flushes!($bios),
    (sync_id, dev),
    (run, place, place_dev)
  )
  GROUP BY run, sync_id, dev
);
