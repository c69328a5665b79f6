-- The time of the syncs of all, and of the 50 programs with the longest ones.
--
-- Result: a row a scope, with
--   scope    all; process:NAME, or comm:NAME where no process is known, or
--            pid:N where no name is known, of a program; others, the programs
--            after the first 50, together.
--   syncs    Number of its syncs.
--   known    Of how many the length is known.
--   time_ns  Their lengths, summed. Null if none is known.
--   wall_ns  The time in which a process, or threads of one name, had at least
--            one of them open, summed over these. For `all`, the time in which
--            a run had one open, summed over the runs. Null likewise.
--
-- Example: SELECT scope FROM time_of_programs!() ORDER BY wall_ns DESC
CREATE PERFETTO MACRO time_of_programs()
RETURNS TableOrSubquery
AS
(
  WITH
    -- Threads of one process may have different names.
    _process AS (
      SELECT
        run, pid,
        COALESCE(
          'process:' || MIN(process),
          'comm:' || MIN(comm),
          'pid:' || CAST(pid AS TEXT)
        ) AS scope
      FROM syncline_sync_call
      WHERE pid IS NOT NULL
      GROUP BY run, pid
    ),
    -- Threads are grouped by name only if their process is unknown.
    _timed AS (
      SELECT
        run, pid,
        CASE WHEN pid IS NULL THEN COALESCE(comm, '') END AS comm,
        ts_ns, dur_ns
      FROM syncline_sync_call
    ),
    _program AS (
      SELECT
        COALESCE(_process.scope, 'comm:' || comm) AS scope,
        SUM(intervals) AS syncs,
        SUM(known) AS known,
        SUM(time_ns) AS time_ns,
        SUM(wall_ns) AS wall_ns
      FROM wall_time!(_timed, (run, pid, comm)) AS _spent
      LEFT JOIN _process
        ON _process.run = _spent.run
        AND _process.pid = _spent.pid
      GROUP BY 1
    ),
    _ranked AS (
      SELECT
        *,
        ROW_NUMBER() OVER (ORDER BY COALESCE(time_ns, 0) DESC, scope) AS _place
      FROM _program
    )
  SELECT
    CASE WHEN _place <= 50 THEN scope ELSE 'others' END AS scope,
    SUM(syncs) AS syncs,
    SUM(known) AS known,
    SUM(time_ns) AS time_ns,
    SUM(wall_ns) AS wall_ns
  FROM _ranked
  GROUP BY 1
  UNION ALL
  SELECT
    'all',
    COALESCE(SUM(intervals), 0),
    COALESCE(SUM(known), 0),
    SUM(time_ns),
    SUM(wall_ns)
  FROM wall_time!(_timed, (run))
);
