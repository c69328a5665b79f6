-- How long a device worked while a sync waited for it.
--
-- Result: a row for each sync with such a time, with
--   run, sync_id  Of the sync.
--   own_ns        How long it worked for nobody but the sync, or for what that
--                 needs of its own commit (own_commit_time!).
--   any_ns        How long it worked, for whomever, unless the sync waited for
--                 a CPU or a lock then. Not less than own_ns.
--
-- Example: SELECT sync_id, own_ns FROM served_times!(held_time)
CREATE PERFETTO MACRO served_times(
  -- Table of how long a party held the device while a sync waited, with `run`,
  -- `sync_id`, `way`, of way_of_phase!, `ns`, and `waiter`, the party of the
  -- sync; and `party`, `state`, `is_sole`, `of_log`, of device_use!.
  held TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT run, sync_id, _own_ns AS own_ns, later!(_any_ns, _own_ns) AS any_ns
  FROM (
    SELECT run, sync_id, SUM(_own_ns) AS _own_ns, SUM(_any_ns) AS _any_ns
    FROM (
      SELECT
        run, sync_id,
        CASE
          WHEN way = 'device'
          AND is_sole = 1
          AND party = waiter THEN ns
          ELSE 0
        END AS _own_ns,
        CASE WHEN way IN ('lock', 'cpu') THEN 0 ELSE ns END AS _any_ns
      FROM $held
      WHERE state = 'working'
      UNION ALL
      SELECT run, sync_id, ns, 0 FROM own_commit_time!() AS _commit
    ) AS _time
    GROUP BY run, sync_id
  ) AS _sum
);
