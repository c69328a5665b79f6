-- The pairs of intervals that overlap: one of the first table and one of the
-- second.
--
-- This finds the bios that were at a device during a sync, and the syncs of a
-- file in flight when a write began to wait. A moment is an interval of 1 ns.
--
-- Result: a row a pair, with the columns of `groups`, of `ours` and `theirs`,
--   and
--   from_ns   When both are open.
--   until_ns  When one of them ends.
--   An interval whose begin or length is null overlaps none.
--
-- Example: SELECT sync_id, bio_id
--   FROM overlaps!(sync, bio, (sync_id), (bio_id), (run, dev))
CREATE PERFETTO MACRO overlaps(
  -- Table of intervals with `ts_ns` and `dur_ns`; the smaller one of the two.
  one TableOrSubquery,
  -- Table of other intervals, likewise.
  other TableOrSubquery,
  -- Columns of the first table to keep. No column of the second has the name of
  -- one of them.
  ours ColumnNameList,
  -- Columns of the second table to keep.
  theirs ColumnNameList,
  -- Columns of both tables. Null equals nothing.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  SELECT
    $groups,
    of!(_one, ($ours)),
    of!(_other, ($theirs)),
    later!(_one.ts_ns, _other.ts_ns) AS from_ns,
    earlier!(_one.ts_ns + _one.dur_ns, _other.ts_ns + _other.dur_ns) AS until_ns
  FROM $one AS _one
  JOIN (SELECT $groups, $theirs, ts_ns, dur_ns FROM $other) AS _other USING (
    $groups
  )
  WHERE
    _other.ts_ns < _one.ts_ns + _one.dur_ns
    AND _other.ts_ns + _other.dur_ns > _one.ts_ns
);

-- Engine: duckdb. A join by group would compare each interval with all others,
-- so time is cut into slots of 2^27 ns, about 0.1 s, and intervals are compared
-- only with those in the same slot. A pair may share several slots: it counts
-- in the one in which its later interval begins.
CREATE PERFETTO MACRO overlaps(
  one TableOrSubquery,
  other TableOrSubquery,
  ours ColumnNameList,
  theirs ColumnNameList,
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _one AS (
      SELECT
        $groups,
        $ours,
        ts_ns,
        ts_ns + dur_ns AS _end_ns,
        UNNEST(RANGE(ts_ns >> 27, ((ts_ns + dur_ns) >> 27) + 1)) AS _slot
      FROM $one
    ),
    _other AS (
      SELECT
        $groups,
        $theirs,
        ts_ns,
        ts_ns + dur_ns AS _end_ns,
        UNNEST(RANGE(ts_ns >> 27, ((ts_ns + dur_ns) >> 27) + 1)) AS _slot
      FROM $other
    )
  SELECT
    $groups,
    of!(_one, ($ours)),
    of!(_other, ($theirs)),
    later!(_one.ts_ns, _other.ts_ns) AS from_ns,
    earlier!(_one._end_ns, _other._end_ns) AS until_ns
  FROM _one
  JOIN _other USING ($groups, _slot)
  WHERE
    _other.ts_ns < _one._end_ns
    AND _other._end_ns > _one.ts_ns
    AND _slot = (later!(_one.ts_ns, _other.ts_ns) >> 27)
);
