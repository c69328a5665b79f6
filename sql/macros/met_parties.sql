-- Syncs with the other parties that used the same device, and whether each was
-- active during the sync. Gaps of up to a second count as active.
--
-- Result: a row for each sync and each other party at its place, with
--   run, sync_id, party
--   is_active  1 if the party was active during the sync, else 0.
--   is_met     1 if it was, and nobody else. 0 if nobody was. Null if others
--              were: then the sync says nothing about this party alone.
--              Threads of the kernel do not count as somebody else.
--
-- Example: SELECT party, COUNT(*) FROM met_parties!(sync, bio)
--   WHERE is_active = 1 GROUP BY party
CREATE PERFETTO MACRO met_parties(
  -- Table of syncs with `run`, `place`, `sync_id`, `party`, `ts_ns`, `dur_ns`.
  syncs TableOrSubquery,
  -- Table of what parties did, with `run`, `place`, `party`, `ts_ns`, `dur_ns`,
  -- and `is_kernel`, 1 for a thread of the kernel, else 0. A place of null is
  -- none, for what did not use a device. A party has one run.
  deeds TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _active AS (
      SELECT party, ts_ns AS at_ns, ts_ns + dur_ns - 1000000000 AS value_ns
      FROM merged!(
        (SELECT party, ts_ns, dur_ns + 1000000000 AS dur_ns FROM $deeds),
        (party)
      )
    ),
    _next_to AS (
      SELECT
        of!(_sync, (run, sync_id, ts_ns)),
        _other.party AS party,
        _other.is_kernel AS is_kernel,
        _sync.ts_ns + _sync.dur_ns AS at_ns
      FROM $syncs AS _sync
      JOIN (SELECT DISTINCT run, place, party, is_kernel FROM $deeds) AS _other
        ON _other.run = _sync.run
        AND _other.place = _sync.place
        AND _other.party <> _sync.party
    ),
    _met AS (
      SELECT *, CASE WHEN value_ns > ts_ns THEN 1 ELSE 0 END AS is_active
      FROM latest_until!(
        _next_to, _active,
        (run, sync_id, ts_ns, is_kernel),
        (party)
      )
    )
  SELECT
    run, sync_id, party, is_active,
    CASE
      WHEN SUM(is_active * (1 - is_kernel)) OVER (PARTITION BY run, sync_id)
      = is_active * (1 - is_kernel) THEN is_active
    END AS is_met
  FROM _met
);
