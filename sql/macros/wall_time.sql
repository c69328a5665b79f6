-- The wall time of intervals: how long at least one of them was open.
--
-- Two syncs of 10 ms that ran at the same time took 20 ms in sum and 10 ms of
-- wall time. The latter is what a program waited whose threads wait for each
-- other, so it is the real cost of parallel syncs.
--
-- Result: a row a group, with the columns of `groups` and
--   intervals  How many intervals the group has.
--   known      Those whose length is known. The others are not in what follows.
--   time_ns    Their lengths, summed. Null if none is known.
--   wall_ns    The time in which at least one of them was open. Null likewise.
--
-- Example: SELECT * FROM wall_time!(syncline_sync, (run, pid))
CREATE PERFETTO MACRO wall_time(
  -- Table of intervals with `ts_ns` and `dur_ns`. A length of null is unknown.
  intervals TableOrSubquery,
  -- Columns of `intervals`. Null is a value like any other.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    -- Only the time after the latest end of all earlier intervals is new.
    _reached AS (
      SELECT
        $groups,
        ts_ns, dur_ns,
        MAX(ts_ns + dur_ns) OVER (
          PARTITION BY $groups
          ORDER BY ts_ns
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS _reach_ns
      FROM $intervals
    )
  SELECT
    $groups,
    COUNT(*) AS intervals,
    COUNT(dur_ns) AS known,
    CAST(SUM(dur_ns) AS BIGINT) AS time_ns,
    CAST(SUM(
      CASE
        WHEN _reach_ns IS NULL
        OR _reach_ns <= ts_ns THEN dur_ns
        WHEN _reach_ns < ts_ns + dur_ns THEN ts_ns + dur_ns - _reach_ns
        WHEN dur_ns IS NOT NULL THEN 0
      END
    ) AS BIGINT) AS wall_ns
  FROM _reached
  GROUP BY $groups
);
