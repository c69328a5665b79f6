-- Phases: what the time of the syncs went to.
--
-- One row per operation, file system, device and phase. A call may have several
-- requests: sync has one for each file system. Each instant of a request, from
-- the start of the file system's sync function to its end, is in one phase, so
-- the phases of a group add up to the time of its requests. If several things
-- ran in parallel, the one that ended last counts, because the others delayed
-- nothing. residue is the time that nothing recorded explains.
-- docs/reference/phases.md describes each phase.
--
-- The phases of a commit are inferred where commits are recorded but waits are
-- not; the column confidence of syncline_wait says so. A high-level log holds
-- no phases, so its rows come from the columns of its requests: before submit,
-- writeback, after completion, and the residue.
--
-- Narrow: op phase time_ns share syncs median_ns max_ns with_phase fs device
--
-- Columns:
--   op            text   The sync call. Null without a call.
--   fs            text   The file system.
--   dev           text   Major and minor number of its device. Null for file
--                        systems without a device and a name, which sync goes
--                        over too.
--   device        text   Name of the device, such as sda. Null where the
--                        recording does not have it.
--   syncs         count  Number of requests whose start and end are known.
--   phase         text   Name of the phase.
--   with_phase    count  Number of these requests that have it.
--   time_ns       ns     Their time in it, summed.
--   share         share  Part of the time of all requests of the group.
--   median_ns     ns     Half of the requests that have the phase spent at most
--                        this time in it.
--   max_ns        ns     The longest time of a request in it.
--   not_recorded  text   Phases that the recording cannot show, in the row of
--                        the residue. Their time is in other phases, or in the
--                        residue. With a number, as in `cpu wait of 3
--                        requests`, this holds for so many requests of the
--                        group.
--   run           text   Name of the run, if the input holds several.
WITH
  -- The requests whose time is known, each with its call.
  request AS (
    SELECT
      of!(sync, (run, sync_id, fs)),
      COALESCE(sync.op, part.op) AS op,
      -- `sync` also visits pseudo file systems; these share one row.
      CASE WHEN fs IS NOT NULL OR dev NOT LIKE '0,%' THEN dev END AS dev,
      ts_ns + dur_ns - start_ns AS time_ns,
      before_submit_ns, writeback_ns, after_complete_ns, journal_ns, flush_ns,
      cpu_wait_ns
    FROM syncline_sync AS sync
    LEFT JOIN parts_of_calls!() AS part ON same!(part, sync, (run, sync_id))
    WHERE start_ns IS NOT NULL AND dur_ns IS NOT NULL
  ),
  -- One row a group of requests. unseen_phases! needs the last two columns.
  request_group AS (
    SELECT
      run, op, fs, dev,
      COUNT(*) AS syncs,
      SUM(time_ns) AS time_ns,
      COUNT(journal_ns) + COUNT(flush_ns) AS waits_known,
      COUNT(cpu_wait_ns) AS cpu_known
    FROM request
    GROUP BY run, op, fs, dev
  ),
  -- Runs that hold phases.
  run_with_phases AS (SELECT DISTINCT run FROM syncline_phase),
  -- The phases that other runs have: those that columns of a request hold.
  column_phase(phase) AS (
    VALUES ('before submit'), ('writeback'), ('after completion'), ('residue')
  ),
  -- The time of each request in each of its phases.
  spent AS (
    SELECT of!(request, (run, op, fs, dev)), phase, dur_ns
    FROM time_of_phases!() AS recorded
    JOIN request
      ON request.run = recorded.run
      AND request.sync_id = recorded.sync_id
    UNION ALL
    -- A run without phases has what the columns of its requests say. All of
    -- the time is residue if there is no bio, or if one is not known: then
    -- after_complete_ns is null.
    SELECT
      run, op, fs, dev, phase,
      CASE
        WHEN phase = 'before submit' THEN before_submit_ns
        WHEN phase = 'writeback' THEN writeback_ns
        WHEN phase = 'after completion' THEN after_complete_ns
        WHEN after_complete_ns >= 0 THEN 0
        ELSE time_ns
      END
    FROM request
    CROSS JOIN column_phase
    WHERE
      run NOT IN (SELECT run FROM run_with_phases)
      AND (phase = 'residue' OR after_complete_ns >= 0)
  ),
  -- The rows of the result: what each phase of each group took.
  group_phase AS (
    SELECT
      run, op, fs, dev, phase,
      COUNT(NULLIF(dur_ns, 0)) AS with_phase,
      SUM(dur_ns) AS time_ns,
      percentile(NULLIF(dur_ns, 0), 50) AS median_ns,
      MAX(NULLIF(dur_ns, 0)) AS max_ns
    FROM spent
    GROUP BY run, op, fs, dev, phase
  )
SELECT
  group_phase.op AS op,
  group_phase.fs AS fs,
  group_phase.dev AS dev,
  device_name!(group_phase) AS device,
  syncs,
  group_phase.phase AS phase,
  CAST(with_phase AS BIGINT) AS with_phase,
  CAST(group_phase.time_ns AS BIGINT) AS time_ns,
  share!(group_phase.time_ns, request_group.time_ns) AS share,
  CAST(median_ns AS DOUBLE) AS median_ns,
  max_ns,
  CASE WHEN phase = 'residue' THEN unseen.phases END AS not_recorded,
  group_phase.run AS run
FROM group_phase
JOIN request_group ON same!(request_group, group_phase, (run, op, fs, dev))
JOIN unseen_phases!(request_group, group_phase, (run, op, fs, dev)) AS unseen
  ON same!(unseen, group_phase, (run, op, fs, dev))
ORDER BY
  group_phase.run,
  COALESCE(request_group.time_ns, 0) DESC,
  group_phase.op NULLS LAST,
  group_phase.fs NULLS LAST,
  group_phase.dev NULLS LAST,
  COALESCE(group_phase.time_ns, 0) DESC,
  group_phase.phase;
