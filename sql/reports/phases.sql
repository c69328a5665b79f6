-- Phases: what the time of the syncs went to.
--
-- One row per operation, file system, device and phase. Each instant of a
-- request, from the start of the file system's sync function to its end, is in
-- one phase, so the phases of a group add up to the time of its requests. What
-- ran in parallel is counted along the path that ended last. residue is the
-- time that nothing recorded explains. docs/reference/phases.md describes each
-- phase. A high-level log holds no phases; its rows are the time before the
-- first bio, until the completion of the last one, and after it.
--
-- Columns:
--   op            text   The sync call. Null without a call.
--   fs            text   The file system.
--   dev           text   Major and minor number of its device.
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
--   not_recorded  text   Of the residue: phases that the recording cannot show.
--                        Their time is in other phases, or in the residue.
--   run           text   Name of the run, if the input holds several.
WITH
  request AS (
    SELECT
      run,
      sync_id,
      op,
      fs,
      dev,
      ts_ns + dur_ns - start_ns AS time_ns,
      before_submit_ns,
      writeback_ns,
      after_complete_ns,
      journal_ns,
      flush_ns
    FROM syncline_sync
    WHERE
      start_ns IS NOT NULL
      AND dur_ns IS NOT NULL
  ),
  found AS (
    SELECT run, sync_id, phase, SUM(dur_ns) AS dur_ns
    FROM syncline_phase
    GROUP BY
      run,
      sync_id,
      phase
  ),
  -- Of a run without phases: what the columns of its requests say.
  bare AS (
    SELECT
      run,
      sync_id,
      time_ns,
      before_submit_ns,
      writeback_ns,
      after_complete_ns
    FROM request
    WHERE
      run NOT IN (SELECT run FROM syncline_phase)
  ),
  span AS (
    SELECT run, sync_id, phase, dur_ns FROM found
    UNION ALL
    SELECT run, sync_id, 'before submit', before_submit_ns
    FROM bare
    WHERE
      after_complete_ns >= 0
    UNION ALL
    SELECT run, sync_id, 'writeback', writeback_ns
    FROM bare
    WHERE
      after_complete_ns >= 0
    UNION ALL
    SELECT run, sync_id, 'after completion', after_complete_ns
    FROM bare
    WHERE
      after_complete_ns >= 0
    UNION ALL
    SELECT
      run,
      sync_id,
      'residue',
      CASE WHEN after_complete_ns >= 0 THEN 0 ELSE time_ns END
    FROM bare
  ),
  total AS (
    SELECT
      run,
      op,
      fs,
      dev,
      COUNT(*) AS syncs,
      SUM(time_ns) AS time_ns,
      COUNT(journal_ns) + COUNT(flush_ns) AS waits_known
    FROM request
    GROUP BY
      run,
      op,
      fs,
      dev
  ),
  part AS (
    SELECT
      request.run AS run,
      op,
      fs,
      dev,
      phase,
      SUM(CASE WHEN dur_ns > 0 THEN 1 ELSE 0 END) AS with_phase,
      SUM(dur_ns) AS time_ns,
      PERCENTILE(CASE WHEN dur_ns > 0 THEN dur_ns END, 50) AS median_ns,
      MAX(CASE WHEN dur_ns > 0 THEN dur_ns END) AS max_ns
    FROM span
    JOIN request ON request.run = span.run AND request.sync_id = span.sync_id
    GROUP BY
      request.run,
      op,
      fs,
      dev,
      phase
  ),
  -- The commas before the first phase and after the last one let each name be
  -- found as a whole.
  seen AS (
    SELECT run, ', ' || value || ',' AS phases
    FROM syncline_meta
    WHERE
      key = 'phases_seen'
  ),
  missing AS (
    SELECT
      total.run AS run,
      op,
      fs,
      dev,
      CASE
        WHEN COALESCE(phases, '') LIKE '%, cpu wait,%' THEN ''
        ELSE ', cpu wait'
      END
      || CASE
        WHEN COALESCE(phases, '') LIKE '%, lock wait,%' THEN ''
        ELSE ', lock wait'
      END
      || CASE
        WHEN COALESCE(phases, '') LIKE '%, device,%' THEN ''
        ELSE ', device'
      END
      || CASE
        WHEN COALESCE(phases, '') LIKE '%, earlier writeback,%' THEN ''
        ELSE ', earlier writeback'
      END
      || CASE
        WHEN COALESCE(phases, '') LIKE '%, commit wait,%'
        AND waits_known > 0 THEN ''
        ELSE ', commit wait, flush'
      END AS phases
    FROM total
    LEFT JOIN seen ON seen.run = total.run
  ),
  unseen AS (
    SELECT run, op, fs, dev, NULLIF(SUBSTR(phases, 3), '') AS phases
    FROM missing
  )
SELECT
  total.op AS op,
  total.fs AS fs,
  total.dev AS dev,
  device_name.value AS device,
  syncs,
  part.phase AS phase,
  CAST(with_phase AS BIGINT) AS with_phase,
  CAST(part.time_ns AS BIGINT) AS time_ns,
  CAST(part.time_ns AS DOUBLE) / NULLIF(total.time_ns, 0) AS share,
  CAST(median_ns AS DOUBLE) AS median_ns,
  max_ns,
  unseen.phases AS not_recorded,
  total.run AS run
FROM part
JOIN total
  ON total.run = part.run
  AND total.op IS NOT DISTINCT FROM part.op
  AND total.fs IS NOT DISTINCT FROM part.fs
  AND total.dev IS NOT DISTINCT FROM part.dev
LEFT JOIN unseen
  ON unseen.run = part.run
  AND unseen.op IS NOT DISTINCT FROM part.op
  AND unseen.fs IS NOT DISTINCT FROM part.fs
  AND unseen.dev IS NOT DISTINCT FROM part.dev
  AND part.phase = 'residue'
LEFT JOIN syncline_meta AS device_name
  ON device_name.run = total.run
  AND device_name.key = 'device_name.' || total.dev
ORDER BY
  total.run,
  COALESCE(total.time_ns, 0) DESC,
  total.op NULLS LAST,
  total.fs NULLS LAST,
  total.dev NULLS LAST,
  COALESCE(part.time_ns, 0) DESC,
  part.phase;
