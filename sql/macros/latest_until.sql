-- For each moment: when the last fact until then was, and the greatest value of
-- all facts until then.
--
-- For example, let a fact be the end of a flush, with the begin of the flush as
-- its value, and let a moment be the end of a sync. The macro then finds the
-- latest begin among the flushes that had ended by then.
--
-- Result: a row a moment, with the columns of `groups` and `keys`, and
--   at_ns     The moment.
--   fact_ns   When the last fact of the group was. One at the moment itself
--             is in time. Null if no fact was in time.
--   value_ns  The greatest value of these facts. Null if none has one.
--   Facts without a time do not count.
--
-- Example: SELECT sync_id, value_ns AS flush_begin_ns
--   FROM latest_until!(sync_end, flush, (sync_id), (run, dev))
CREATE PERFETTO MACRO latest_until(
  -- Table of moments with `at_ns`, and the columns of `keys` and `groups`.
  moments TableOrSubquery,
  -- Table of facts with `at_ns`, `value_ns` and the columns of `groups`.
  facts TableOrSubquery,
  -- Columns of `moments` by which the caller knows a moment.
  keys ColumnNameList,
  -- Columns of both tables. Null is a value like any other.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _moment AS (SELECT $groups, $keys, at_ns FROM $moments),
    _point AS (
      SELECT
        _moment.*,
        1 AS _is_moment,
        CAST(NULL AS BIGINT) AS _fact_ns,
        CAST(NULL AS BIGINT) AS _value_ns
      FROM _moment
      UNION ALL
      SELECT
        of!(_fact, ($groups)),
        of!(_none, ($keys)),
        at_ns, 0, at_ns, value_ns
      FROM $facts AS _fact
      LEFT JOIN (SELECT $keys FROM _moment LIMIT 0) AS _none ON TRUE
      WHERE at_ns IS NOT NULL
    ),
    _seen AS (
      SELECT
        *,
        MAX(_fact_ns) OVER _until AS fact_ns,
        MAX(_value_ns) OVER _until AS value_ns
      FROM _point
      WINDOW _until AS (PARTITION BY $groups ORDER BY at_ns)
    )
  SELECT $groups, $keys, at_ns, fact_ns, value_ns
  FROM _seen
  WHERE _is_moment = 1
);

-- Engine: duckdb. It computes a window without an order while rows come from a
-- sort, and keeps nothing of them. Such a window does not begin again with a
-- group, so a time is counted from the begin of its group in a row of all.
CREATE PERFETTO MACRO latest_until(
  moments TableOrSubquery,
  facts TableOrSubquery,
  keys ColumnNameList,
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _moment AS (SELECT $groups, $keys, at_ns FROM $moments),
    _fact AS NOT MATERIALIZED (
      SELECT $groups, at_ns, value_ns FROM $facts WHERE at_ns IS NOT NULL
    ),
    _group AS MATERIALIZED (
      SELECT $groups, CAST(ROW_NUMBER() OVER () AS HUGEINT) << 64 AS _base
      FROM (SELECT DISTINCT $groups FROM _fact) AS _known
    ),
    _point AS (
      SELECT
        _moment.*,
        _group._base,
        TRUE AS _is_moment,
        CAST(NULL AS BIGINT) AS _value_ns
      FROM _moment
      LEFT JOIN _group ON same!(_group, _moment, ($groups))
      UNION ALL
      SELECT
        of!(_none, ($groups, $keys)),
        _fact.at_ns, _group._base, FALSE, value_ns
      FROM _fact
      JOIN _group ON same!(_group, _fact, ($groups))
      LEFT JOIN (SELECT $groups, $keys FROM _moment LIMIT 0) AS _none ON TRUE
    ),
    _sorted AS (SELECT * FROM _point ORDER BY _base, at_ns, _is_moment),
    -- A maximum below _least is of an earlier group.
    _seen AS (
      SELECT
        *,
        _base - (CAST(1 AS HUGEINT) << 63) AS _least,
        MAX(CASE WHEN NOT _is_moment THEN _base + at_ns END) OVER _past AS _at,
        MAX(_base + _value_ns) OVER _past AS _most
      FROM _sorted
      WINDOW _past AS (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    )
  SELECT
    $groups,
    $keys,
    at_ns,
    CASE WHEN _at >= _least THEN CAST(_at - _base AS BIGINT) END AS fact_ns,
    CASE WHEN _most >= _least THEN CAST(_most - _base AS BIGINT) END AS value_ns
  FROM _seen
  WHERE _is_moment
);
