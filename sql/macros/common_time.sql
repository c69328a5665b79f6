-- How long intervals of two tables were open at the same time, in sum.
--
-- This finds how long a device worked for somebody while a sync waited for it.
-- A join would have a row for each pair of intervals: a wait of a second, and
-- 100,000 bios in it. Here, each interval of the first table asks twice, when
-- it begins and when it ends, how long each key of the second one had been open
-- until then, which takes one sort.
--
-- Result: one row or more for each pair of keys of one group that were open at
--   the same time, with the columns of `groups`, `ours` and `theirs`, and
--   common_ns  How long. The rows of a pair add up.
--
-- Example: SELECT owner, SUM(common_ns)
--   FROM common_time!(wait, use, (sync_id), (owner), (run, dev)) GROUP BY owner
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

-- Engine: duckdb. Most waits are short and overlap one or two intervals, which
-- a join by slots of 2 ms finds. A wait of 33 ms or longer asks as above, by a
-- join with the last row before a time, among the intervals near such waits.
-- Nothing is summed here but that, because there may be as many pairs of keys
-- as there are waits. The 10^7 syncs of a benchmark wait 52 million times while
-- a device is used 53 million times: 300 s of CPU and 3.6 GB of memory, the
-- join of the result with the syncs included.
-- `& 0` makes a number one of each row, because DuckDB 2.0.0 fails if numbers
-- that come from a small table pass UNNEST and then a join.
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
    _group AS (
      SELECT $groups, CAST(ROW_NUMBER() OVER () AS INTEGER) AS _number
      FROM (SELECT DISTINCT $groups FROM $other) AS _known
    ),
    _name AS (
      SELECT $groups, $theirs, CAST(ROW_NUMBER() OVER () AS INTEGER) AS _key
      FROM (SELECT DISTINCT $groups, $theirs FROM $other) AS _known
    ),
    _use AS NOT MATERIALIZED (
      SELECT
        _number + (ts_ns & 0) AS _number,
        _key + (ts_ns & 0) AS _key,
        ts_ns, dur_ns
      FROM $other AS _other
      JOIN _group USING ($groups)
      JOIN _name ON same!(_name, _other, ($groups, $theirs))
      WHERE dur_ns > 0
    ),
    _wait AS NOT MATERIALIZED (
      SELECT
        _number + (ts_ns & 0) AS _number,
        $ours,
        ts_ns, dur_ns,
        dur_ns < (1 << 25) AS _is_short
      FROM $one AS _one
      JOIN _group USING ($groups)
    ),
    -- A pair that shares several slots counts in that of its later begin.
    _pair AS (
      SELECT
        _key,
        of!(_brief, ($ours)),
        earlier!(_brief.ts_ns + _brief.dur_ns, _busy.ts_ns + _busy.dur_ns)
        - later!(_brief.ts_ns, _busy.ts_ns) AS _ns
      FROM (
        SELECT
          *,
          UNNEST(RANGE(ts_ns >> 21, ((ts_ns + dur_ns) >> 21) + 1)) AS _slot
        FROM _wait
        WHERE _is_short
      ) AS _brief
      JOIN (
        SELECT
          *,
          UNNEST(RANGE(ts_ns >> 21, ((ts_ns + dur_ns) >> 21) + 1)) AS _slot
        FROM _use
      ) AS _busy USING (_number, _slot)
      WHERE
        _busy.ts_ns < _brief.ts_ns + _brief.dur_ns
        AND _busy.ts_ns + _busy.dur_ns > _brief.ts_ns
        AND _slot = (later!(_brief.ts_ns, _busy.ts_ns) >> 21)
    ),
    _long AS (SELECT * FROM _wait WHERE NOT _is_short),
    -- Uses that touch no slot of a long wait change what had been open until
    -- its begin and until its end by the same time.
    _open AS (
      SELECT *, SUM(dur_ns) OVER (PARTITION BY _key ORDER BY ts_ns) AS _begun_ns
      FROM (
        SELECT DISTINCT _number, _key, ts_ns, dur_ns
        FROM (
          SELECT
            *,
            UNNEST(RANGE(ts_ns >> 23, ((ts_ns + dur_ns) >> 23) + 1)) AS slot
          FROM _use
        ) AS _touching
        JOIN slots!(_long, (_number)) AS _touched USING (_number, slot)
      ) AS _near_use
    ),
    _begun AS (
      SELECT _key, ts_ns AS _at_ns, ts_ns + dur_ns AS _until_ns, _begun_ns
      FROM _open
    ),
    _near AS (
      SELECT DISTINCT _number, of!(_one, ($ours)), _other._key
      FROM slots!(_long, (_number, $ours)) AS _one
      JOIN slots!(_open, (_number, _key)) AS _other USING (_number, slot)
    ),
    _point AS (
      SELECT
        _key,
        $ours,
        UNNEST([-1, 1]) AS _sign,
        UNNEST([ts_ns, ts_ns + dur_ns]) AS _at_ns
      FROM _long
      JOIN _near USING (_number, $ours)
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
    ),
    _part AS (
      SELECT _key, $ours, _ns FROM _pair
      UNION ALL
      SELECT _key, $ours, CAST(_ns AS BIGINT) FROM _sum WHERE _ns > 0
    )
  SELECT $groups, $ours, $theirs, _ns AS common_ns
  FROM _part
  JOIN _name USING (_key)
);
