-- For whom a device works in each of its states: the second half of
-- device_use!.
--
-- Result: the rows of device_use!.
--
-- Example: SELECT * FROM users_of_states!(state, bio, (run, dev))
CREATE PERFETTO MACRO users_of_states(
  -- Table of what holds from `ts_ns` on for `dur_ns`, with
  -- `queued`, `kept`, `log_queued`, the number of bios in the queue, of those
  -- that the kernel keeps, and of those of a log among both;
  -- `issued`, `logs`, the number of bios at the device, and of a log among
  -- them;
  -- `parties`, `squares`, the sums of the numbers of their parties, and of the
  -- squares of these;
  -- `sent`, the number of those not kept that were issued until then;
  -- `sent_ns`, `kept_ns`, when the last one that was queued, or kept, until
  -- then is issued;
  -- `last_ns`, `until_ns`, when the last one until then was issued, and when
  -- the last one of all these completes.
  states TableOrSubquery,
  -- The bios, as for device_use!.
  bios TableOrSubquery,
  -- Columns of both tables. Null equals nothing.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    -- Bios of one request of the block layer are issued and completed together.
    _last AS (
      SELECT $groups, issue_ns AS last_ns, MAX(ts_ns + dur_ns) AS _last_end_ns
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
    -- The bio that is issued next may not be queued yet. Then the last one of
    -- the queue counts.
    _next AS (
      SELECT
        $groups,
        ROW_NUMBER() OVER _by_issue - 1 AS sent,
        ts_ns AS _queued_ns,
        party AS _next_party,
        is_log AS _next_log,
        has_preflush AS _next_preflush
      FROM $bios
      WHERE is_kept = 0
      WINDOW _by_issue AS (PARTITION BY $groups ORDER BY issue_ns, ts_ns, party)
    ),
    _last_sent AS (
      SELECT
        $groups,
        issue_ns AS sent_ns,
        MIN(party) AS _last_party,
        MIN(is_log) AS _last_log,
        MAX(has_preflush) AS _last_preflush
      FROM $bios
      WHERE is_kept = 0
      GROUP BY $groups, issue_ns
    ),
    _next_kept AS (
      SELECT $groups, issue_ns AS kept_ns, MIN(party) AS _kept_party
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
          WHEN issued > 0
          AND parties * parties = issued * squares THEN 1
          ELSE 0
        END AS is_sole,
        CASE
          WHEN _last_end_ns > ts_ns THEN _last_end_ns
          ELSE until_ns
        END AS _served_ns
      FROM $states
      LEFT JOIN _last USING ($groups, last_ns)
      WHERE dur_ns > 0 AND issued + queued + kept > 0
    ),
    _used AS (
      SELECT
        $groups,
        ts_ns, dur_ns, is_sole,
        CASE
          WHEN is_sole = 1 THEN CAST(parties / issued AS BIGINT)
          WHEN issued > 0 THEN _served_party
          WHEN queued > 0
          AND _queued_ns <= ts_ns THEN _next_party
          WHEN queued > 0 THEN _last_party
          ELSE _kept_party
        END AS party,
        CASE WHEN log_queued > 0 THEN is_sole ELSE 0 END AS is_awaited,
        CASE
          WHEN issued = 0
          AND queued > 0 THEN CASE
            WHEN _queued_ns <= ts_ns THEN _next_log
            ELSE _last_log
          END
          WHEN issued > 0
          AND is_sole = 0 THEN _served_log
          WHEN issued > 0
          AND logs = issued THEN 1
          ELSE 0
        END AS of_log,
        CASE
          WHEN issued > 0 THEN 'working'
          WHEN queued = 0 THEN 'kept'
          WHEN dur_ns < 1000000
          OR CASE
            WHEN _queued_ns <= ts_ns THEN _next_preflush
            ELSE _last_preflush
          END
          = 1 THEN 'working'
          ELSE 'queued'
        END AS _device
      FROM _span
      LEFT JOIN _served USING ($groups, _served_ns)
      LEFT JOIN _next USING ($groups, sent)
      LEFT JOIN _last_sent USING ($groups, sent_ns)
      LEFT JOIN _next_kept USING ($groups, kept_ns)
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
