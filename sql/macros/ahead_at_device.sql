-- The bios that were ahead at a device: at the place for which a sync waits,
-- and issued before what it waits for.
--
-- A bio that a partition or a device mapper redirected is issued at the device
-- below. There it meets all others. At its own device, it meets those that were
-- not redirected, or whose redirection is not recorded.
--
-- Result: a row for each wait and bio, with
--   run, sync_id  Of the wait.
--   bio_id        Of the bio. It may be one of the sync itself.
--   from_ns       When both the wait and the time at the device have begun.
--   until_ns      When one of them ends.
--   A wait or a bio with a time that is null has no rows.
--
-- Example: SELECT sync_id, COUNT(DISTINCT bio_id)
--   FROM ahead_at_device!(waiting, bio) GROUP BY sync_id
CREATE PERFETTO MACRO ahead_at_device(
  -- Table of waits with `run`, `sync_id`, `ts_ns`, `dur_ns`, and
  -- `before_ns`, before which a bio must have been issued;
  -- `dev`, the device of what it waits for, null if that is not known;
  -- `place`, the device at which this was issued.
  waits TableOrSubquery,
  -- Table of bios with `run`, `bio_id`, `dev`, `issue_ns`, `complete_ns`, and
  -- `below`, the device to which it was redirected, or null.
  bios TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _wait AS (
      SELECT
        run, sync_id, place,
        FALSE AS _wait_is_above,
        ts_ns, dur_ns, before_ns
      FROM $waits
      UNION ALL
      SELECT run, sync_id, dev, TRUE, ts_ns, dur_ns, before_ns
      FROM $waits
      WHERE dev <> place
    ),
    -- The waits of a sync are many and near to each other. So the bios near to
    -- all of them are found first.
    _sync AS (
      SELECT
        run, sync_id, place,
        MIN(ts_ns) AS ts_ns,
        MAX(ts_ns + dur_ns) - MIN(ts_ns) AS dur_ns
      FROM _wait
      GROUP BY run, sync_id, place
    ),
    _bio AS (
      SELECT
        run, bio_id,
        COALESCE(below, dev) AS place,
        FALSE AS _is_above,
        issue_ns,
        issue_ns AS ts_ns,
        complete_ns - issue_ns AS dur_ns
      FROM $bios
      UNION ALL
      SELECT run, bio_id, dev, TRUE, issue_ns, issue_ns, complete_ns - issue_ns
      FROM $bios
      WHERE below IS NOT NULL
    ),
    _near AS (
      SELECT *, issue_ns AS ts_ns
      FROM overlaps!(
        _sync,
        (SELECT *, dur_ns AS _device_ns FROM _bio),
        (sync_id),
        (bio_id, _is_above, issue_ns, _device_ns),
        (run, place)
      )
    )
  SELECT DISTINCT run, sync_id, bio_id, from_ns, until_ns
  FROM overlaps!(
    _wait,
    (SELECT *, _device_ns AS dur_ns FROM _near),
    (before_ns, _wait_is_above),
    (bio_id, _is_above, issue_ns),
    (run, sync_id, place)
  )
  WHERE issue_ns < before_ns AND NOT (_wait_is_above AND _is_above)
);
