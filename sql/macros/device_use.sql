-- For whom a device works, over time, and for whom it does not.
--
-- At each instant, a device works for one owner. If it has several bios, that
-- is the owner of the one that was issued last, because a large bio is served
-- in parts, and smaller ones go in between. While it has none, it is held by
-- the owner of the queued bio that it gets next. While a bio is queued for a
-- flush before it, the device empties its cache.
--
-- Result: rows with the columns of `groups`; those of one state do not overlap:
--   ts_ns, dur_ns  When.
--   party          Who.
--   state          working: the device works for the owner. idle: it has no
--                  bio, and others wait for the party, whose data are kept, or
--                  whose bio is queued for a millisecond or longer. stalled: so
--                  is this bio, and the owner waits for something that is not
--                  recorded, in addition to idle.
--   is_sole        1 if the device has bios of nobody else, and not none.
--   is_awaited     1 if, in addition, a bio of a log is queued.
--   of_log         1 if the device works for a log, or for who waits for one.
--
-- Example: SELECT party, SUM(dur_ns) FROM device_use!(bio, (run, dev))
--   WHERE state = 'working' GROUP BY party
CREATE PERFETTO MACRO device_use(
  -- Table of bios with `ts_ns`, `dur_ns`, `issue_ns`;
  -- `party`, a number above 0, for its owner; and, each 1 or 0,
  -- `is_log`, whether it is of a commit;
  -- `has_preflush`, whether the device flushes before it;
  -- `is_kept`, whether its data are kept until its issue, by the thread that
  -- writes many, or by a limit of its control group.
  bios TableOrSubquery,
  -- Columns of `bios`. Null equals nothing.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _step(_end, _queue_step, _device_step) AS (
      VALUES ('queue', 1, 0), ('issue', -1, 1), ('complete', 0, -1)
    ),
    _moment AS (
      SELECT
        *,
        CASE _end
          WHEN 'queue' THEN ts_ns
          WHEN 'issue' THEN issue_ns
          ELSE ts_ns + dur_ns
        END AS _at_ns,
        CASE WHEN _end = 'queue' AND is_kept = 0 THEN issue_ns END AS _sent_ns,
        CASE WHEN _end = 'queue' AND is_kept = 1 THEN issue_ns END AS _kept_ns,
        CASE _end WHEN 'issue' THEN issue_ns END AS _last_ns,
        CASE _end WHEN 'issue' THEN ts_ns + dur_ns END AS _until_ns
      FROM $bios
      CROSS JOIN _step
    ),
    -- From each moment to the next one, how many bios are queued and at the
    -- device; when the last one is issued of those that are queued or kept;
    -- when the last bio was issued, and when the last one completes of these.
    _state AS (
      SELECT
        $groups,
        _at_ns AS ts_ns,
        LEAD(_at_ns) OVER _in_order - _at_ns AS dur_ns,
        SUM(_queue_step * (1 - is_kept)) OVER _in_order AS _queued,
        SUM(_queue_step * is_kept) OVER _in_order AS _kept,
        SUM(_queue_step * is_log) OVER _in_order AS _log_queued,
        SUM(_device_step) OVER _in_order AS _issued,
        SUM(_device_step * is_log * (1 - is_kept)) OVER _in_order AS _logs,
        SUM(_device_step * party) OVER _in_order AS _parties,
        SUM(_device_step * party * party) OVER _in_order AS _squares,
        MAX(_sent_ns) OVER _in_order AS _sent_ns,
        MAX(_kept_ns) OVER _in_order AS _kept_ns,
        MAX(_last_ns) OVER _in_order AS _last_ns,
        MAX(_until_ns) OVER _in_order AS _until_ns
      FROM _moment
      WINDOW _in_order AS (PARTITION BY $groups ORDER BY _at_ns)
    ),
    -- Bios of one request of the block layer are issued and completed together.
    _last AS (
      SELECT $groups, issue_ns AS _last_ns, MAX(ts_ns + dur_ns) AS _last_end_ns
      FROM $bios
      GROUP BY $groups, issue_ns
    ),
    _served AS (
      SELECT
        $groups,
        ts_ns + dur_ns AS _served_ns,
        MIN(party) AS _served_party,
        MIN(is_log * (1 - is_kept)) AS _served_log
      FROM $bios
      GROUP BY $groups, ts_ns + dur_ns
    ),
    _next AS (
      SELECT
        $groups,
        issue_ns AS _sent_ns,
        MIN(party) AS _next_party,
        MIN(is_log) AS _next_log,
        MAX(has_preflush) AS _next_preflush
      FROM $bios
      WHERE is_kept = 0
      GROUP BY $groups, issue_ns
    ),
    _next_kept AS (
      SELECT $groups, issue_ns AS _kept_ns, MIN(party) AS _kept_party
      FROM $bios
      WHERE is_kept = 1
      GROUP BY $groups, issue_ns
    ),
    -- All at the device are of one owner if the square of the sum of their
    -- numbers is their count times the sum of the squares.
    _span AS (
      SELECT
        *,
        CASE
          WHEN _issued > 0
          AND _parties * _parties = _issued * _squares THEN 1
          ELSE 0
        END AS is_sole,
        CASE
          WHEN _last_end_ns > ts_ns THEN _last_end_ns
          ELSE _until_ns
        END AS _served_ns
      FROM _state
      LEFT JOIN _last USING ($groups, _last_ns)
      WHERE dur_ns > 0 AND _issued + _queued + _kept > 0
    ),
    _used AS (
      SELECT
        $groups,
        ts_ns, dur_ns, is_sole,
        CASE
          WHEN is_sole = 1 THEN CAST(_parties / _issued AS BIGINT)
          WHEN _issued > 0 THEN _served_party
          WHEN _queued > 0 THEN _next_party
          ELSE _kept_party
        END AS party,
        CASE WHEN _log_queued > 0 THEN is_sole ELSE 0 END AS is_awaited,
        CASE
          WHEN _issued = 0
          AND _queued > 0 THEN _next_log
          WHEN _issued > 0
          AND is_sole = 0 THEN _served_log
          WHEN _issued > 0
          AND _logs = _issued THEN 1
          ELSE 0
        END AS of_log,
        CASE
          WHEN _issued > 0 THEN 'working'
          WHEN _queued = 0 THEN 'kept'
          WHEN _next_preflush = 1
          OR dur_ns < 1000000 THEN 'working'
          ELSE 'queued'
        END AS _device
      FROM _span
      LEFT JOIN _served USING ($groups, _served_ns)
      LEFT JOIN _next USING ($groups, _sent_ns)
      LEFT JOIN _next_kept USING ($groups, _kept_ns)
    ),
    _meaning(_device, state) AS (
      VALUES
        ('working', 'working'),
        ('kept', 'idle'),
        ('queued', 'idle'),
        ('queued', 'stalled')
    )
  SELECT
    $groups,
    ts_ns, dur_ns, party, state, is_sole, is_awaited,
    CASE WHEN state <> 'stalled' THEN of_log ELSE 0 END AS of_log
  FROM _used
  JOIN _meaning USING (_device)
);

-- Engine: duckdb. It computes a window without an order while rows come from a
-- sort, and keeps nothing: 3.0 s of CPU for the states of 2.4 * 10^6 bios
-- instead of 7.6 s, and 0.8 GB instead of 2.4 GB. Such a window does not begin
-- again with a group. Sums do so by themselves, because no bio is left at the
-- end of one, and times carry the number of their group.
CREATE PERFETTO MACRO device_use(
  bios TableOrSubquery,
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _group AS (
      SELECT $groups, CAST(ROW_NUMBER() OVER () AS HUGEINT) << 64 AS _base
      FROM (SELECT DISTINCT $groups FROM $bios) AS _known
    ),
    _bio AS NOT MATERIALIZED (
      SELECT
        _base, ts_ns, issue_ns,
        ts_ns + dur_ns AS _end_ns,
        party, is_log, has_preflush, is_kept
      FROM $bios
      JOIN _group USING ($groups)
    ),
    _side(_queue_step, _device_step) AS (VALUES (1, 0), (-1, 1), (0, -1)),
    -- Narrow, because the sort holds all of it.
    _moment AS (
      SELECT
        _base, party, issue_ns, _end_ns,
        CASE
          WHEN _queue_step > 0 THEN ts_ns
          WHEN _device_step > 0 THEN issue_ns
          ELSE _end_ns
        END AS _at_ns,
        CAST(_queue_step AS TINYINT) AS _queue_step,
        CAST(_device_step AS TINYINT) AS _device_step,
        CAST(is_kept AS TINYINT) AS is_kept,
        CAST(is_log AS TINYINT) AS is_log
      FROM _bio
      CROSS JOIN _side
      ORDER BY _base, _at_ns
    ),
    _state AS (
      SELECT
        _base,
        _base + _at_ns AS _at,
        _at_ns AS ts_ns,
        LEAD(_at_ns) OVER () - _at_ns AS dur_ns,
        SUM(_queue_step * (1 - is_kept)) OVER _past AS _queued,
        SUM(_queue_step * is_kept) OVER _past AS _kept,
        SUM(_queue_step * is_log) OVER _past AS _log_queued,
        SUM(_device_step) OVER _past AS _issued,
        SUM(_device_step * is_log * (1 - is_kept)) OVER _past AS _logs,
        SUM(_device_step * party) OVER _past AS _parties,
        SUM(_device_step * party * party) OVER _past AS _squares,
        MAX(CASE
          WHEN _queue_step > 0 AND is_kept = 0 THEN _base + issue_ns
        END) OVER _past AS _sent_at,
        MAX(CASE
          WHEN _queue_step > 0 AND is_kept = 1 THEN _base + issue_ns
        END) OVER _past AS _kept_at,
        MAX(CASE
          WHEN _device_step > 0 THEN _base + issue_ns
        END) OVER _past AS _last_at,
        MAX(CASE
          WHEN _device_step > 0 THEN _base + _end_ns
        END) OVER _past AS _until_at
      FROM _moment
      WINDOW _past AS (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ),
    -- Bios of one request of the block layer are issued and completed together.
    _last AS (
      SELECT _base + issue_ns AS _last_at, MAX(_base + _end_ns) AS _last_end_at
      FROM _bio
      GROUP BY _base + issue_ns
    ),
    _served AS (
      SELECT
        _base + _end_ns AS _served_at,
        MIN(party) AS _served_party,
        MIN(is_log * (1 - is_kept)) AS _served_log
      FROM _bio
      GROUP BY _base + _end_ns
    ),
    _next AS (
      SELECT
        _base + issue_ns AS _sent_at,
        MIN(party) AS _next_party,
        MIN(is_log) AS _next_log,
        MAX(has_preflush) AS _next_preflush
      FROM _bio
      WHERE is_kept = 0
      GROUP BY _base + issue_ns
    ),
    _next_kept AS (
      SELECT _base + issue_ns AS _kept_at, MIN(party) AS _kept_party
      FROM _bio
      WHERE is_kept = 1
      GROUP BY _base + issue_ns
    ),
    _span AS (
      SELECT
        *,
        CASE
          WHEN _issued > 0
          AND _parties * _parties = _issued * _squares THEN 1
          ELSE 0
        END AS is_sole,
        CASE
          WHEN _last_end_at > _at THEN _last_end_at
          ELSE _until_at
        END AS _served_at
      FROM _state
      LEFT JOIN _last USING (_last_at)
      WHERE dur_ns > 0 AND _issued + _queued + _kept > 0
    ),
    _used AS (
      SELECT
        _base, ts_ns, dur_ns, is_sole,
        CASE
          WHEN is_sole = 1 THEN CAST(_parties / _issued AS BIGINT)
          WHEN _issued > 0 THEN _served_party
          WHEN _queued > 0 THEN _next_party
          ELSE _kept_party
        END AS party,
        CASE WHEN _log_queued > 0 THEN is_sole ELSE 0 END AS is_awaited,
        CASE
          WHEN _issued = 0
          AND _queued > 0 THEN _next_log
          WHEN _issued > 0
          AND is_sole = 0 THEN _served_log
          WHEN _issued > 0
          AND _logs = _issued THEN 1
          ELSE 0
        END AS of_log,
        CASE
          WHEN _issued > 0 THEN 'working'
          WHEN _queued = 0 THEN 'kept'
          WHEN _next_preflush = 1
          OR dur_ns < 1000000 THEN 'working'
          ELSE 'queued'
        END AS _device
      FROM _span
      LEFT JOIN _served USING (_served_at)
      LEFT JOIN _next USING (_sent_at)
      LEFT JOIN _next_kept USING (_kept_at)
    ),
    _meaning(_device, state) AS (
      VALUES
        ('working', 'working'),
        ('kept', 'idle'),
        ('queued', 'idle'),
        ('queued', 'stalled')
    )
  SELECT
    of!(_group, ($groups)),
    ts_ns, dur_ns, party, state, is_sole, is_awaited,
    CASE WHEN state <> 'stalled' THEN of_log ELSE 0 END AS of_log
  FROM _used
  JOIN _meaning USING (_device)
  JOIN _group USING (_base)
);
