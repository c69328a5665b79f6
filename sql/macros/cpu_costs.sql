-- The time that syncs lost because another party had the CPU.
--
-- While the device works for the sync or for a commit, a thread that gets its
-- CPU sooner may only wait longer for the device, so that time costs nothing.
-- Where it is only inferred who had the CPU, what the device does says more, so
-- time in which it works, or others wait for somebody's data, does not count.
--
-- Result: a row for each such wait of a sync for the CPU of another party, with
--   run, sync_id, ts_ns, dur_ns  Of the wait.
--   party, kind  Who had the CPU.
--   is_exact     As of cpu_users!.
--   cost_ns      dur_ns without the time that does not count.
--   sure_ns      That of it in which the device did nothing. 0 if it is only
--                inferred who had the CPU.
--
-- Example: SELECT party, SUM(cost_ns)
--   FROM cpu_costs!(cpu_users!(), sync, party, use) GROUP BY party
CREATE PERFETTO MACRO cpu_costs(
  -- Table with the columns of cpu_users!.
  users TableOrSubquery,
  -- Table of syncs with `run`, `sync_id`, `place`, `party`.
  syncs TableOrSubquery,
  -- Table with the columns of parties!.
  parties TableOrSubquery,
  -- Table with the columns of device_use!, with `run` and `place`.
  uses TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _wait AS MATERIALIZED (
      SELECT
        of!(_sync, (run, place, sync_id)),
        of!(_user, (ts_ns, dur_ns, is_exact)),
        of!(_party, (party, kind)),
        _user.ts_ns AS _at_ns,
        _sync.party AS _waiter
      FROM $users AS _user
      JOIN $syncs AS _sync USING (run, sync_id)
      JOIN $parties AS _party USING (run, owner)
      WHERE _party.party <> _sync.party
    ),
    _used AS (
      SELECT
        run, sync_id, _at_ns,
        SUM(common_ns) AS _all_ns,
        SUM(
          CASE
            WHEN state = 'working'
            AND (party = _waiter OR of_log = 1) THEN common_ns
            ELSE 0
          END
        ) AS _own_ns
      FROM common_time!(
        _wait,
        (SELECT * FROM $uses WHERE state IN ('working', 'idle')),
        (sync_id, _waiter, _at_ns),
        (party, of_log, state),
        (run, place)
      ) AS _common
      GROUP BY run, sync_id, _at_ns
    )
  SELECT
    of!(_wait, (run, sync_id, ts_ns, dur_ns, party, kind, is_exact)),
    _wait.dur_ns
    - CASE is_exact
      WHEN 1 THEN COALESCE(_own_ns, 0)
      ELSE COALESCE(_all_ns, 0)
    END AS cost_ns,
    is_exact * (_wait.dur_ns - COALESCE(_all_ns, 0)) AS sure_ns
  FROM _wait
  LEFT JOIN _used USING (run, sync_id, _at_ns)
);
