-- How long intervals of two tables were open at the same time, in sum.
--
-- This finds how long a device worked for somebody while a sync waited for it.
-- A join would have a row for each pair of intervals: a wait of a second, and
-- 100,000 bios in it. Here, each interval of the first table asks twice, when
-- it begins and when it ends, how long each key of the second one had been open
-- until then, which takes one sort.
--
-- Result: a row for each pair of keys of one group that were open at the same
--   time, with the columns of `groups`, `ours` and `theirs`, and
--   common_ns  How long.
--
-- Example: SELECT sync_id, owner, common_ns
--   FROM common_time!(wait, use, (sync_id), (owner), (run, dev))
CREATE PERFETTO MACRO common_time(
  -- Table of intervals with `ts_ns` and `dur_ns`, neither of them null.
  one TableOrSubquery,
  -- Table of other intervals, likewise. Intervals of one key must not overlap.
  other TableOrSubquery,
  -- Columns of the first table, not null: the key of an interval, or of
  -- several. No column of the second has the name of one of them.
  ours ColumnNameList,
  -- Columns of the second table: the key of its intervals.
  theirs ColumnNameList,
  -- Columns of both tables. Null equals nothing.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _open AS (
      SELECT *, DENSE_RANK() OVER (ORDER BY $groups, $theirs) AS _key
      FROM $other
    ),
    _near AS (
      SELECT DISTINCT of!(_one, ($groups, $ours)), _other._key
      FROM slots!($one, ($groups, $ours)) AS _one
      JOIN slots!(_open, ($groups, _key)) AS _other USING ($groups, slot)
    ),
    _side(_sign) AS (VALUES (-1), (1)),
    _point AS (
      SELECT
        _key,
        $ours,
        _sign,
        CASE _sign WHEN 1 THEN ts_ns + dur_ns ELSE ts_ns END AS _at_ns,
        CAST(NULL AS BIGINT) AS _dur_ns
      FROM $one AS _one
      JOIN _near USING ($groups, $ours)
      CROSS JOIN _side
      UNION ALL
      SELECT _key, of!(_none, ($ours)), 0, ts_ns, dur_ns
      FROM _open
      LEFT JOIN (SELECT $ours FROM $one LIMIT 0) AS _none ON TRUE
    ),
    -- What had begun until then, and when the last one of that ends.
    _reached AS (
      SELECT
        *,
        SUM(_dur_ns) OVER _until AS _begun_ns,
        MAX(_at_ns + _dur_ns) OVER _until AS _until_ns
      FROM _point
      WINDOW _until AS (PARTITION BY _key ORDER BY _at_ns)
    ),
    _sum AS (
      SELECT
        _key,
        $ours,
        SUM(
          _sign
          * (_begun_ns
          - CASE WHEN _until_ns > _at_ns THEN _until_ns - _at_ns ELSE 0 END)
        ) AS _ns
      FROM _reached
      WHERE _sign <> 0
      GROUP BY _key, $ours
    )
  SELECT $groups, $ours, $theirs, CAST(_ns AS BIGINT) AS common_ns
  FROM _sum
  JOIN (SELECT DISTINCT $groups, $theirs, _key FROM _open) AS _name USING (_key)
  WHERE _ns > 0
);

-- Engine: duckdb. It has a join with the last row before a time, which is
-- faster than a sort of both: 5.6 s instead of 23 s of CPU for the waits and
-- the uses of 30,000 requests.
CREATE PERFETTO MACRO common_time(
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
    _open AS (
      SELECT *, DENSE_RANK() OVER (ORDER BY $groups, $theirs) AS _key
      FROM $other
    ),
    _begun AS (
      SELECT
        _key,
        ts_ns AS _at_ns,
        ts_ns + dur_ns AS _until_ns,
        SUM(dur_ns) OVER (
          PARTITION BY _key
          ORDER BY ts_ns
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS _begun_ns
      FROM _open
    ),
    _near AS (
      SELECT DISTINCT of!(_one, ($groups, $ours)), _other._key
      FROM slots!($one, ($groups, $ours)) AS _one
      JOIN slots!(_open, ($groups, _key)) AS _other USING ($groups, slot)
    ),
    _point AS (
      SELECT
        _key,
        $ours,
        UNNEST([-1, 1]) AS _sign,
        UNNEST([ts_ns, ts_ns + dur_ns]) AS _at_ns
      FROM $one AS _one
      JOIN _near USING ($groups, $ours)
    ),
    _sum AS (
      SELECT
        _key,
        $ours,
        SUM(
          _sign
          * (_begun_ns
          - CASE
            WHEN _until_ns > _point._at_ns THEN _until_ns - _point._at_ns
            ELSE 0
          END)
        ) AS _ns
      FROM _point ASOF
      JOIN _begun USING (_key, _at_ns)
      GROUP BY _key, $ours
    )
  SELECT $groups, $ours, $theirs, CAST(_ns AS BIGINT) AS common_ns
  FROM _sum
  JOIN (SELECT DISTINCT $groups, $theirs, _key FROM _open) AS _name USING (_key)
  WHERE _ns > 0
);
