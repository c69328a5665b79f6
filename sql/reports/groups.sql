-- Groups: clusters of syncs by latency and amount (section 6.3 of the thesis).
--
-- Covers the complete requests whose amount and writeback latency are known.
-- Both are put on a grid of logarithmic cells: an octave of the amount, and a
-- half of one of the latency (a third from 100 requests on, a quarter from 1000
-- on). Cells that touch, also at a corner, are in one group, and from one
-- octave of the amount to the next the latency may grow by an octave too. A
-- group has at least 3 requests and 2 % of all; the rest are the group others.
-- Cells with less than a 400th of the requests do not connect. Empty syncs are
-- a group of their own, because they have no place on the grid.
--
-- Columns:
--   number            id     Number of the group, by its number of requests.
--                            Null for empty syncs and others.
--   kind              text   group, empty or others.
--   syncs             count  Number of requests.
--   share             share  Their share of all requests that are covered.
--   time_share        share  Their share of the sum of the durations.
--   min_bytes         bytes  Least amount.
--   max_bytes         bytes  Largest amount.
--   writeback_min_ns  ns     Least writeback latency.
--   writeback_avg_ns  ns     Average writeback latency.
--   writeback_max_ns  ns     Largest writeback latency.
--   duration_avg_ns   ns     Average duration.
--   bios_avg          ratio  Average number of bios.
--   differs           prose  Up to three properties whose share differs most
--                            from that of the other requests, with both shares.
--   commit_share      share  Requests during whose writeback the thread of the
--                            journal made a commit. Null if no commit is
--                            recorded.
--   others_share      share  Requests during whose writeback a background bio
--                            was in flight. Null if bios are not recorded.
--   main_phase        text   The phase that took most of the time.
--   phase_share       share  Its share of the time.
--   sync_id           id     The longest request.
--   run               text   Name of the run, if the input holds several.
WITH RECURSIVE
  -- Numbers of what is no group.
  special(number, kind) AS (VALUES (0, 'empty'), (-1, 'others')),
  request AS MATERIALIZED (
    SELECT
      run,
      sync_id,
      op,
      comm,
      path,
      bytes,
      bios,
      ranges,
      writeback_ns,
      dur_ns,
      journal_ns,
      start_ns + before_submit_ns AS from_ns,
      start_ns + before_submit_ns + writeback_ns AS until_ns
    FROM syncline_sync
    WHERE
      incomplete IS NULL
      AND bytes IS NOT NULL
      AND writeback_ns IS NOT NULL
      AND dur_ns IS NOT NULL
  ),
  -- Of each run. octave is the number of cells of an octave of the latency.
  covered AS MATERIALIZED (
    SELECT
      run,
      COUNT(*) AS requests,
      SUM(dur_ns) AS time_ns,
      2 + CASE WHEN COUNT(*) >= 100 THEN 1 ELSE 0 END
      + CASE WHEN COUNT(*) >= 1000 THEN 1 ELSE 0 END AS octave
    FROM request
    GROUP BY run
  ),
  -- A half is added, so that no value is exactly at the border of a cell.
  placed AS (
    SELECT
      request.run AS run,
      octave,
      requests,
      CAST(FLOOR(LOG2(bytes + 0.5)) AS BIGINT) AS x,
      CAST(FLOOR(LOG2(writeback_ns + 0.5) * octave) AS BIGINT) AS y
    FROM request
    JOIN covered ON covered.run = request.run
    WHERE
      bytes > 0
      AND writeback_ns > 0
  ),
  cell AS MATERIALIZED (
    SELECT run, x, y, octave, COUNT(*) AS syncs, MIN(requests) AS requests
    FROM placed
    GROUP BY run, x, y, octave
  ),
  dense AS MATERIALIZED (
    SELECT run, x, y, octave, x * 1000 + y AS cell_id
    FROM cell
    WHERE syncs * 400 >= requests
  ),
  reach(run, seed, x, y) AS (
    SELECT run, cell_id, x, y FROM dense
    UNION
    SELECT reach.run, reach.seed, dense.x, dense.y
    FROM reach
    JOIN dense
      ON dense.run = reach.run
      AND dense.x BETWEEN reach.x - 1 AND reach.x + 1
      -- For the next octave of the amount, the latency may be one higher.
      AND dense.y BETWEEN reach.y
      - CASE WHEN dense.x < reach.x THEN octave ELSE 1 END AND reach.y
      + CASE WHEN dense.x > reach.x THEN octave ELSE 1 END
  ),
  component AS (
    SELECT run, x, y, MIN(seed) AS seed FROM reach GROUP BY run, x, y
  ),
  sized AS (
    SELECT
      component.run AS run,
      component.seed AS seed,
      SUM(cell.syncs) AS syncs,
      MIN(cell.requests) AS requests
    FROM component
    JOIN cell
      ON cell.run = component.run
      AND cell.x = component.x
      AND cell.y = component.y
    GROUP BY component.run, component.seed
  ),
  numbered AS (
    SELECT
      run,
      seed,
      ROW_NUMBER() OVER (PARTITION BY run ORDER BY syncs DESC, seed) AS number
    FROM sized
    WHERE
      syncs >= 3
      AND syncs * 50 >= requests
  ),
  numbered_cell AS MATERIALIZED (
    SELECT
      component.run AS run,
      component.x AS x,
      component.y AS y,
      numbered.number AS number
    FROM component
    JOIN numbered
      ON numbered.run = component.run
      AND numbered.seed = component.seed
  ),
  -- Each request with the number of its group.
  member AS MATERIALIZED (
    SELECT
      request.*,
      CASE
        WHEN request.bytes > 0 THEN COALESCE(numbered_cell.number, -1)
        ELSE 0
      END AS number
    FROM request
    JOIN covered ON covered.run = request.run
    LEFT JOIN numbered_cell
      ON numbered_cell.run = request.run
      AND numbered_cell.x
      = CASE WHEN bytes > 0 THEN CAST(FLOOR(LOG2(bytes + 0.5)) AS BIGINT) END
      AND numbered_cell.y
      = CASE
        WHEN writeback_ns > 0 THEN FLOOR(LOG2(writeback_ns + 0.5) * octave)
      END
  ),
  -- What was in progress during the writeback of a request: the latest end of
  -- what began before the writeback ended is after its begin.
  moment AS (
    SELECT
      run,
      until_ns AS at_ns,
      1 AS place,
      number,
      from_ns,
      CAST(NULL AS BIGINT) AS commit_ns,
      CAST(NULL AS BIGINT) AS bio_ns
    FROM member
    WHERE
      bytes > 0
      AND writeback_ns > 0
    UNION ALL
    SELECT run, ts_ns, 0, NULL, NULL, ts_ns + dur_ns, NULL
    FROM syncline_journal
    WHERE
      kind = 'commit'
      AND dur_ns IS NOT NULL
    UNION ALL
    SELECT run, ts_ns, 0, NULL, NULL, NULL, ts_ns + dur_ns
    FROM syncline_bio
    WHERE
      sync_id IS NULL
      AND dur_ns IS NOT NULL
  ),
  during AS (
    SELECT
      run,
      number,
      from_ns,
      MAX(commit_ns) OVER (PARTITION BY run ORDER BY at_ns, place) AS commit_ns,
      MAX(bio_ns) OVER (PARTITION BY run ORDER BY at_ns, place) AS bio_ns
    FROM moment
  ),
  busy AS MATERIALIZED (
    SELECT
      run,
      number,
      CAST(COUNT(*) AS DOUBLE) AS placed,
      SUM(CASE WHEN commit_ns > from_ns THEN 1 ELSE 0 END) AS with_commit,
      SUM(CASE WHEN bio_ns > from_ns THEN 1 ELSE 0 END) AS with_others
    FROM during
    WHERE number IS NOT NULL
    GROUP BY run, number
  ),
  recorded AS (
    SELECT request.run AS run, MAX(commits) AS commits, MAX(bios) AS bios
    FROM covered AS request
    LEFT JOIN (
      SELECT DISTINCT run, 1 AS commits
      FROM syncline_journal
      WHERE kind = 'commit'
    ) AS made
      ON made.run = request.run
    LEFT JOIN (SELECT DISTINCT run, 1 AS bios FROM syncline_bio) AS bio
      ON bio.run = request.run
    GROUP BY request.run
  ),
  spent AS (
    SELECT
      member.run AS run,
      member.number AS number,
      phase.phase AS phase,
      SUM(phase.dur_ns) AS time_ns
    FROM member
    JOIN syncline_phase AS phase
      ON phase.run = member.run
      AND phase.sync_id = member.sync_id
    GROUP BY member.run, member.number, phase.phase
  ),
  main AS (
    SELECT
      *,
      SUM(time_ns) OVER (PARTITION BY run, number) AS all_ns,
      ROW_NUMBER() OVER costliest AS place
    FROM spent
    WINDOW
      costliest AS (PARTITION BY run, number ORDER BY time_ns DESC, phase)
  ),
  counted AS (
    SELECT run, number, 'op ' || op AS name, COUNT(*) AS syncs
    FROM member
    WHERE op IS NOT NULL
    GROUP BY run, number, op
    UNION ALL
    SELECT run, number, 'file ' || path AS name, COUNT(*) AS syncs
    FROM member
    WHERE path IS NOT NULL
    GROUP BY run, number, path
    UNION ALL
    SELECT run, number, 'thread ' || comm AS name, COUNT(*) AS syncs
    FROM member
    WHERE comm IS NOT NULL
    GROUP BY run, number, comm
    UNION ALL
    SELECT run, number, 'waited for a commit' AS name, COUNT(*) AS syncs
    FROM member
    WHERE journal_ns > 0
    GROUP BY run, number
    UNION ALL
    SELECT run, number, 'several ranges' AS name, COUNT(*) AS syncs
    FROM member
    WHERE ranges > 1
    GROUP BY run, number
    UNION ALL
    SELECT run, number, 'several bios' AS name, COUNT(*) AS syncs
    FROM member
    WHERE bios > 1
    GROUP BY run, number
    UNION ALL
    SELECT run, number, 'a commit during its writeback', with_commit
    FROM busy
    WHERE with_commit > 0
    UNION ALL
    SELECT run, number, 'a background bio in flight', with_others
    FROM busy
    WHERE with_others > 0
  ),
  whole AS (
    SELECT run, name, SUM(syncs) AS syncs FROM counted GROUP BY run, name
  ),
  size AS (
    SELECT
      run,
      number,
      COUNT(*) AS syncs,
      SUM(COUNT(*)) OVER (PARTITION BY run) AS requests
    FROM member
    GROUP BY run, number
  ),
  -- A property that no request of a group has counts too.
  difference AS (
    SELECT
      size.run AS run,
      size.number AS number,
      whole.name AS name,
      CAST(COALESCE(counted.syncs, 0) AS DOUBLE) / size.syncs AS here,
      CAST(whole.syncs - COALESCE(counted.syncs, 0) AS DOUBLE)
      / (size.requests - size.syncs) AS elsewhere
    FROM size
    JOIN whole ON whole.run = size.run
    LEFT JOIN counted
      ON counted.run = size.run
      AND counted.number = size.number
      AND counted.name = whole.name
    -- A name that hardly occurs does not describe a group.
    WHERE
      size.requests > size.syncs
      AND whole.syncs >= 3
  ),
  ranked AS (
    SELECT
      *,
      ROW_NUMBER() OVER (
        PARTITION BY run, number
        ORDER BY ROUND(ABS(here - elsewhere), 9) DESC, name
      ) AS place
    FROM difference
    WHERE ABS(here - elsewhere) >= 0.1
  ),
  said AS (
    SELECT
      run,
      number,
      place,
      name || ' ' || CAST(CAST(FLOOR(here * 100 + 0.5) AS BIGINT) AS TEXT)
      || ' % (elsewhere '
      || CAST(CAST(FLOOR(elsewhere * 100 + 0.5) AS BIGINT) AS TEXT)
      || ' %)' AS text
    FROM ranked
    WHERE place <= 3
  ),
  differs AS (
    SELECT
      run,
      number,
      MAX(CASE WHEN place = 1 THEN text END)
      || COALESCE('; ' || MAX(CASE WHEN place = 2 THEN text END), '')
      || COALESCE('; ' || MAX(CASE WHEN place = 3 THEN text END), '') AS text
    FROM said
    GROUP BY run, number
  ),
  grouped AS MATERIALIZED (
    SELECT
      run,
      number,
      COUNT(*) AS syncs,
      SUM(dur_ns) AS dur_ns,
      MAX(dur_ns) AS max_dur_ns,
      MIN(bytes) AS min_bytes,
      MAX(bytes) AS max_bytes,
      MIN(writeback_ns) AS writeback_min_ns,
      SUM(writeback_ns) AS writeback_ns,
      MAX(writeback_ns) AS writeback_max_ns,
      SUM(bios) AS bios
    FROM member
    GROUP BY run, number
  ),
  longest AS (
    SELECT
      member.run AS run,
      member.number AS number,
      MIN(member.sync_id) AS sync_id
    FROM member
    JOIN grouped
      ON grouped.run = member.run
      AND grouped.number = member.number
      AND grouped.max_dur_ns = member.dur_ns
    GROUP BY member.run, member.number
  )
SELECT
  CASE WHEN grouped.number > 0 THEN grouped.number END AS number,
  COALESCE(special.kind, 'group') AS kind,
  grouped.syncs AS syncs,
  CAST(grouped.syncs AS DOUBLE) / covered.requests AS share,
  CAST(grouped.dur_ns AS DOUBLE) / NULLIF(covered.time_ns, 0) AS time_share,
  grouped.min_bytes AS min_bytes,
  grouped.max_bytes AS max_bytes,
  grouped.writeback_min_ns AS writeback_min_ns,
  CAST(grouped.writeback_ns AS DOUBLE) / grouped.syncs AS writeback_avg_ns,
  grouped.writeback_max_ns AS writeback_max_ns,
  CAST(grouped.dur_ns AS DOUBLE) / grouped.syncs AS duration_avg_ns,
  CAST(grouped.bios AS DOUBLE) / grouped.syncs AS bios_avg,
  differs.text AS differs,
  recorded.commits * busy.with_commit / busy.placed AS commit_share,
  recorded.bios * busy.with_others / busy.placed AS others_share,
  main.phase AS main_phase,
  CAST(main.time_ns AS DOUBLE) / NULLIF(main.all_ns, 0) AS phase_share,
  longest.sync_id AS sync_id,
  grouped.run AS run
FROM grouped
LEFT JOIN special ON special.number = grouped.number
JOIN recorded ON recorded.run = grouped.run
JOIN covered ON covered.run = grouped.run
JOIN longest ON longest.run = grouped.run AND longest.number = grouped.number
LEFT JOIN busy ON busy.run = grouped.run AND busy.number = grouped.number
LEFT JOIN differs
  ON differs.run = grouped.run
  AND differs.number = grouped.number
LEFT JOIN main
  ON main.run = grouped.run
  AND main.number = grouped.number
  AND main.place = 1
ORDER BY
  grouped.run,
  CASE WHEN grouped.number > 0 THEN 0 ELSE 1 - grouped.number END,
  grouped.number;
