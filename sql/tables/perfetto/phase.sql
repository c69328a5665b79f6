-- What the time of complete requests went to.
--
-- Slices of phases are inside of their request, or of a wait of it. What they
-- leave of a wait is a phase of its own, with the name of the wait. What phases
-- and waits leave of the request is its residue, and so are slices of that name
-- inside of waits.

--
-- A trace that holds all values may have another layout, in which waits are
-- inside of phases. The whole time of such a request is residue.

INCLUDE PERFETTO MODULE dev.syncline.sync;

-- Phases of sync requests, one row each.
CREATE OR REPLACE PERFETTO TABLE syncline_phase (
  -- Request.
  sync_id LONG,
  -- Number of the phase in its request: 1, 2, 3... in the order of time. The
  -- residue is the last one.
  number LONG,
  -- Name of the phase, such as `device`, `commit logging` or `residue`.
  phase STRING,
  -- Start of the phase. Null for a residue that is in several pieces or of
  -- length 0.
  ts_ns TIMESTAMP,
  -- Duration of the phase. The durations of the phases of a request add up to
  -- the time from its `sync_start` to its `sync_end`.
  dur_ns DURATION,
  -- In `cpu wait`, the thread that had the CPU which the thread of the request
  -- got next. In a wait for a commit and in `completion`, the one that had the
  -- CPU for which that thread waited which woke the thread of the request. 0 if
  -- the CPU was idle. Null for other phases, if no CPU was waited for, and if
  -- it is not known.
  cpu_tid LONG,
  -- Process of that thread. Null likewise, and if the process is not known.
  cpu_pid LONG,
  -- Name of that thread. Null likewise, and if the name is not known.
  cpu_comm STRING,
  -- Name of that process. Null likewise, and if the name is not known.
  cpu_process STRING,
  -- Control group of that process. Null likewise, and if the group is not
  -- known.
  cpu_cgroup STRING,
  -- Confidence in that thread: `exact` if the switch to it is recorded,
  -- `inferred` if only the one from it is. Null where `cpu_tid` is.
  cpu_confidence STRING,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
WITH
  request AS MATERIALIZED (
    SELECT sync_id
    FROM syncline_sync
    WHERE start_ns IS NOT NULL AND dur_ns IS NOT NULL
  ),
  -- Slices of the requests whose slices are of another layout.
  other_layout AS MATERIALIZED (
    SELECT DISTINCT phase.parent_id AS id
    FROM slice
    JOIN slice AS phase ON phase.id = slice.parent_id
    WHERE
      slice.category = 'syncline.wait'
      AND slice.dur > 0
      AND phase.category = 'syncline.phase'
  ),
  -- Requests, without a name of their own, and their waits.
  outer_slice AS MATERIALIZED (
    SELECT
      slice.id, slice.ts,
      slice.ts + slice.dur AS end_ts,
      request.sync_id,
      iif(category = 'syncline.wait', slice.name, NULL) AS name
    FROM slice
    CROSS JOIN request
      ON request.sync_id = extract_arg(slice.arg_set_id, 'debug.sync_id')
    WHERE category IN ('syncline.sync', 'syncline.wait')
  ),
  inner_slice AS MATERIALIZED (
    SELECT
      outer_slice.id AS outer_id,
      outer_slice.sync_id,
      outer_slice.name AS outer_name,
      outer_slice.ts AS outer_ts,
      iif(slice.category = 'syncline.phase', slice.name, NULL) AS name,
      slice.arg_set_id, slice.ts,
      slice.ts + slice.dur AS end_ts
    FROM slice
    JOIN outer_slice ON outer_slice.id = slice.parent_id
    WHERE
      slice.category IN ('syncline.phase', 'syncline.wait')
      AND outer_slice.id NOT IN (SELECT id FROM other_layout)
    UNION ALL
    SELECT id, sync_id, name, ts, NULL, NULL, end_ts, end_ts FROM outer_slice
  ),
  -- What is left before each inner slice, and before the end of the outer one.
  gap AS MATERIALIZED (
    SELECT
      sync_id, outer_name,
      COALESCE(
        LAG(end_ts) OVER (PARTITION BY outer_id ORDER BY ts, end_ts),
        outer_ts
      ) AS ts,
      ts AS end_ts
    FROM inner_slice
  ),
  phase AS (
    SELECT
      sync_id,
      0 AS is_last,
      name AS phase,
      ts,
      end_ts - ts AS dur,
      arg_set_id
    FROM inner_slice
    WHERE name <> 'residue'
    UNION ALL
    SELECT sync_id, 0, outer_name, ts, end_ts - ts, NULL
    FROM gap
    WHERE outer_name IS NOT NULL AND end_ts > ts
    UNION ALL
    SELECT
      sync_id, 1, 'residue',
      iif(MAX(end_ts) - MIN(ts) = SUM(end_ts - ts), MIN(ts), NULL),
      SUM(end_ts - ts),
      NULL
    FROM (
      SELECT
        sync_id,
        iif(end_ts > ts, ts, NULL) AS ts,
        iif(end_ts > ts, end_ts, NULL) AS end_ts
      FROM gap
      WHERE outer_name IS NULL
      UNION ALL
      SELECT sync_id, ts, end_ts FROM inner_slice WHERE name = 'residue'
    )
    GROUP BY sync_id
  )
SELECT
  sync_id,
  ROW_NUMBER() OVER (PARTITION BY sync_id ORDER BY is_last, ts) AS number,
  phase,
  ts AS ts_ns,
  COALESCE(dur, 0) AS dur_ns,
  extract_arg(arg_set_id, 'debug.cpu_tid') AS cpu_tid,
  extract_arg(arg_set_id, 'debug.cpu_pid') AS cpu_pid,
  extract_arg(arg_set_id, 'debug.cpu_comm') AS cpu_comm,
  extract_arg(arg_set_id, 'debug.cpu_process') AS cpu_process,
  extract_arg(arg_set_id, 'debug.cpu_cgroup') AS cpu_cgroup,
  extract_arg(arg_set_id, 'debug.cpu_confidence') AS cpu_confidence,
  '' AS run
FROM phase
ORDER BY sync_id, number;
