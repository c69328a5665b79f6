-- Phases: what the time of the syncs went to.
--
-- One row per operation, file system, device and phase. Each instant of a
-- request, from the start of the file system's sync function to its end, is in
-- one phase, so the phases of a group add up to the time of its requests. What
-- ran in parallel is counted along the path that ended last. residue is the
-- time that nothing recorded explains. docs/reference/phases.md describes each
-- phase. Those of a commit are inferred where only commits are recorded, and no
-- waits: syncline_wait says so. A high-level log holds no phases; its rows are
-- the time before the first bio, until the completion of the last one, and
-- after it.
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
--                        Their time is in other phases, or in the residue. With
--                        a number, of so many requests of the group.
--   run           text   Name of the run, if the input holds several.
WITH
  request AS NOT MATERIALIZED (
    SELECT
      run, sync_id, op, fs, dev,
      ts_ns + dur_ns - start_ns AS time_ns,
      before_submit_ns, writeback_ns, after_complete_ns, journal_ns, flush_ns,
      cpu_wait_ns
    FROM syncline_sync
    WHERE start_ns IS NOT NULL AND dur_ns IS NOT NULL
  ),
  -- Numbers take less memory than names. No group is empty: HAVING makes DuckDB
  -- expect fewer groups than requests, and so keep the groups in memory when it
  -- joins both.
  total AS MATERIALIZED (
    SELECT
      run, op, fs, dev,
      CAST(DENSE_RANK() OVER (ORDER BY run) AS INTEGER) AS run_id,
      CAST(ROW_NUMBER() OVER (ORDER BY run, op, fs, dev) AS INTEGER) AS sum_id,
      COUNT(*) AS syncs,
      SUM(time_ns) AS time_ns,
      COUNT(journal_ns) + COUNT(flush_ns) AS waits_known,
      COUNT(cpu_wait_ns) AS cpu_known
    FROM request
    GROUP BY run, op, fs, dev
    HAVING COUNT(*) > 0
  ),
  number AS MATERIALIZED (SELECT DISTINCT run, run_id FROM total),
  recorded AS MATERIALIZED (SELECT DISTINCT run, phase FROM syncline_phase),
  -- A run without phases has what the columns of its requests say.
  of_columns(phase, kind_id) AS (
    VALUES
      ('before submit', -1),
      ('writeback', -2),
      ('after completion', -3),
      ('residue', -4)
  ),
  -- Two joins by one name each are faster than one by both.
  name AS MATERIALIZED (
    SELECT phase, CAST(ROW_NUMBER() OVER (ORDER BY phase) AS INTEGER) AS kind_id
    FROM (SELECT DISTINCT phase FROM recorded) AS found
    UNION ALL
    SELECT phase, kind_id FROM of_columns
  ),
  spent AS (
    SELECT run_id, kind_id, sync_id, CAST(SUM(dur_ns) AS BIGINT) AS dur_ns
    FROM syncline_phase AS found
    JOIN number ON number.run = found.run
    JOIN name ON name.phase = found.phase AND name.kind_id > 0
    GROUP BY run_id, kind_id, sync_id
  ),
  owner AS NOT MATERIALIZED (
    SELECT
      request.run, run_id, sum_id, sync_id, request.time_ns, before_submit_ns,
      writeback_ns, after_complete_ns
    FROM request
    JOIN total
      ON total.run = request.run
      AND total.op IS NOT DISTINCT FROM request.op
      AND total.fs IS NOT DISTINCT FROM request.fs
      AND total.dev IS NOT DISTINCT FROM request.dev
  ),
  pair AS MATERIALIZED (
    SELECT sum_id, kind_id, dur_ns
    FROM spent
    JOIN owner ON owner.run_id = spent.run_id AND owner.sync_id = spent.sync_id
    UNION ALL
    SELECT
      sum_id, kind_id,
      CASE
        WHEN kind_id = -1 THEN before_submit_ns
        WHEN kind_id = -2 THEN writeback_ns
        WHEN kind_id = -3 THEN after_complete_ns
        WHEN after_complete_ns >= 0 THEN 0
        ELSE time_ns
      END
    FROM owner
    CROSS JOIN of_columns
    WHERE
      run NOT IN (SELECT run FROM recorded)
      AND (kind_id = -4 OR after_complete_ns >= 0)
  ),
  -- An engine keeps all values of a percentile in memory. So the values are
  -- counted in slices first, and then one by one in the slices that hold it.
  slice AS MATERIALIZED (
    SELECT
      sum_id, kind_id,
      dur_ns - dur_ns % 65536 AS slice_start,
      COUNT(CASE WHEN dur_ns > 0 THEN 1 END) AS pairs,
      SUM(dur_ns) AS time_ns,
      MAX(CASE WHEN dur_ns > 0 THEN dur_ns END) AS max_ns
    FROM pair
    GROUP BY sum_id, kind_id, 3
  ),
  sums AS MATERIALIZED (
    SELECT
      sum_id, kind_id,
      SUM(pairs) AS with_phase,
      SUM(time_ns) AS time_ns,
      MAX(max_ns) AS max_ns
    FROM slice
    GROUP BY sum_id, kind_id
  ),
  placed AS (
    SELECT
      sum_id, kind_id, slice_start, pairs,
      SUM(pairs) OVER (PARTITION BY sum_id, kind_id ORDER BY slice_start)
      - pairs AS before
    FROM slice
    WHERE pairs > 0
  ),
  wanted AS MATERIALIZED (
    SELECT placed.sum_id, placed.kind_id, placed.slice_start, placed.before
    FROM placed
    JOIN sums
      ON sums.sum_id = placed.sum_id
      AND sums.kind_id = placed.kind_id
      AND placed.before * 2 <= sums.with_phase
      AND (placed.before + placed.pairs) * 2 >= sums.with_phase
  ),
  counted AS (
    SELECT
      wanted.sum_id, wanted.kind_id, wanted.before, pair.dur_ns,
      COUNT(*) AS pairs
    -- CROSS JOIN makes SQLite look up the few slices of each value.
    FROM pair
    CROSS JOIN wanted
    WHERE
      wanted.sum_id = pair.sum_id
      AND wanted.kind_id = pair.kind_id
      AND wanted.slice_start = pair.dur_ns - pair.dur_ns % 65536
      AND pair.dur_ns > 0
    GROUP BY wanted.sum_id, wanted.kind_id, wanted.before, pair.dur_ns
  ),
  ordered AS (
    SELECT
      sum_id, kind_id, dur_ns, pairs, before
      + SUM(pairs) OVER (PARTITION BY sum_id, kind_id, before ORDER BY dur_ns)
      - pairs AS before
    FROM counted
  ),
  -- Half of the values are before the median, or the two values around it.
  middle AS (
    SELECT
      ordered.sum_id, ordered.kind_id,
      (CAST(MIN(dur_ns) AS DOUBLE) + MAX(dur_ns)) / 2 AS median_ns
    FROM ordered
    JOIN sums
      ON sums.sum_id = ordered.sum_id
      AND sums.kind_id = ordered.kind_id
      AND ordered.before * 2 <= sums.with_phase
      AND (ordered.before + ordered.pairs) * 2 >= sums.with_phase
    GROUP BY ordered.sum_id, ordered.kind_id
  ),
  part AS (
    SELECT
      total.run AS run,
      total.op AS op,
      total.fs AS fs,
      total.dev AS dev,
      phase, with_phase,
      sums.time_ns AS time_ns,
      median_ns, max_ns
    FROM sums
    JOIN total ON total.sum_id = sums.sum_id
    JOIN name ON name.kind_id = sums.kind_id
    LEFT JOIN middle
      ON middle.sum_id = sums.sum_id
      AND middle.kind_id = sums.kind_id
  ),
  -- The commas before the first phase and after the last one let each name be
  -- found as a whole.
  seen AS (
    SELECT run, ', ' || value || ',' AS phases
    FROM syncline_meta
    WHERE key = 'phases_seen'
  ),
  -- Waits for commits may be inferred where they are not recorded.
  inferred AS (
    SELECT DISTINCT run, op, fs, dev FROM part WHERE phase LIKE 'commit%'
  ),
  missing AS (
    SELECT
      total.run AS run,
      total.op AS op,
      total.fs AS fs,
      total.dev AS dev,
      CASE
        WHEN cpu_known = syncs THEN ''
        WHEN cpu_known > 0 THEN ', cpu wait of '
        || CAST(syncs - cpu_known AS TEXT)
        || ' requests'
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
        WHEN inferred.run IS NOT NULL THEN ', earlier commit, commit start'
        ELSE ', commit wait'
      END
      -- A flush is a bio, too, where waits are not recorded.
      || CASE
        WHEN COALESCE(phases, '') LIKE '%, flush,%'
        AND (waits_known > 0 OR phases NOT LIKE '%, commit wait,%') THEN ''
        ELSE ', flush'
      END AS phases
    FROM total
    LEFT JOIN seen ON seen.run = total.run
    LEFT JOIN inferred
      ON inferred.run = total.run
      AND inferred.op IS NOT DISTINCT FROM total.op
      AND inferred.fs IS NOT DISTINCT FROM total.fs
      AND inferred.dev IS NOT DISTINCT FROM total.dev
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
