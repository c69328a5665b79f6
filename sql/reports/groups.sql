-- Groups: clusters of requests by latency and amount (section 6.3 of the
-- thesis).
--
-- It covers the complete requests whose amount and writeback latency are
-- known, so not those of sync() and syncfs without an id, for which flusher
-- threads may have written. Both are put on a grid of logarithmic cells: an
-- octave of the amount, and a half of one of the latency (a third from 100
-- requests on, a quarter from 1000 on). Cells that touch, also at a corner, are
-- in one group, and from one octave of the amount to the next the latency may
-- grow by an octave too. A group has at least 3 requests and 2 % of all; the
-- rest are the group others. Requests in cells with less than a 400th of them
-- all are others too, because a few requests in between should not join two
-- groups. Empty requests are a group of their own, because they have no place
-- on the grid.
--
-- Narrow: number kind syncs share time_share duration_avg_ns main_phase
--  phase_share max_bytes differs
--
-- Columns:
--   number            id     Number of the group, by its number of requests.
--                            Null for empty requests and others.
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
--   differs           prose  Up to three properties that 3 requests or more
--                            have, and whose share differs most from that of
--                            the other requests, by 10 points or more, with
--                            both shares. Requests of which it is not known
--                            whether they have it do not count. Null without
--                            one.
--   commit_share      share  Requests during whose writeback the thread of the
--                            journal of their device made a commit. Null for
--                            empty ones, and if no commit of it is recorded.
--   others_share      share  Requests during whose writeback a bio of no
--                            request was in flight at any device: also reads,
--                            and bios of commits. Null for empty ones, and if
--                            bios are not recorded.
--   main_phase        text   The phase with the most time. Null without phases.
--   phase_share       share  Its share of the time from sync_start to sync_end.
--   sync_id           id     The longest request.
--   run               text   Name of the run, if the input holds several.
WITH RECURSIVE
  -- The requests of which all is known that a group is found by.
  complete AS (
    SELECT
      of!(sync, (run, sync_id, dev, comm, path, bytes, bios, ranges)),
      of!(sync, (writeback_ns, dur_ns, journal_ns)),
      COALESCE(sync.op, part.op) AS op,
      start_ns + before_submit_ns AS writeback_begin_ns
    FROM syncline_sync AS sync
    LEFT JOIN parts_of_calls!() AS part ON same!(part, sync, (run, sync_id))
    WHERE
      incomplete IS NULL
      AND bytes + writeback_ns + dur_ns IS NOT NULL
      AND (bytes > 0
      OR id IS NOT NULL
      OR COALESCE(sync.op, part.op, '') NOT IN ('sync', 'syncfs'))
  ),
  -- One row a run. `cells`: into how many cells a doubling of the latency is
  -- cut. More requests fill smaller ones.
  run_total AS (
    SELECT
      run,
      COUNT(*) AS requests,
      SUM(dur_ns) AS time_ns,
      2 + CAST(COUNT(*) >= 100 AS INT) + CAST(COUNT(*) >= 1000 AS INT) AS cells
    FROM complete
    GROUP BY run
  ),
  -- Each request with its cell. A half is added, so that no value is exactly at
  -- the border of one.
  request AS (
    SELECT
      complete.*,
      cells, requests,
      CAST(FLOOR(LOG2(bytes + 0.5)) AS BIGINT) AS x,
      CAST(FLOOR(LOG2(writeback_ns + 0.5) * cells) AS BIGINT) AS y
    FROM complete
    JOIN run_total ON run_total.run = complete.run
  ),
  -- The cells with enough requests to connect others: a 400th of all, or more.
  dense AS (
    SELECT
      run, x, y, cells, requests,
      COUNT(*) AS syncs,
      x * 1000 + y AS cell_id
    FROM request
    WHERE bytes > 0 AND writeback_ns > 0
    GROUP BY run, x, y, cells, requests
    HAVING COUNT(*) * 400 >= requests
  ),
  -- The cells that are reached from each cell, directly or by others between.
  reach(run, seed, x, y) AS (
    SELECT run, cell_id, x, y FROM dense
    UNION
    SELECT reach.run, reach.seed, dense.x, dense.y
    FROM reach
    JOIN dense
      ON dense.run = reach.run
      AND dense.x BETWEEN reach.x - 1 AND reach.x + 1
      -- Latency may grow by an octave with the amount, and shrink likewise.
      AND dense.y BETWEEN reach.y
      - CASE WHEN dense.x < reach.x THEN cells ELSE 1 END AND reach.y
      + CASE WHEN dense.x > reach.x THEN cells ELSE 1 END
  ),
  -- Cells that reach each other are of one group. The least of them names it.
  connected AS (
    SELECT run, x, y, MIN(seed) AS seed FROM reach GROUP BY run, x, y
  ),
  -- The groups that are large enough, the largest first.
  numbered AS (
    SELECT run, seed, ROW_NUMBER() OVER largest_first AS number
    FROM connected
    JOIN dense USING (run, x, y)
    GROUP BY run, seed, requests
    HAVING SUM(syncs) >= 3 AND SUM(syncs) * 50 >= requests
    WINDOW largest_first AS (PARTITION BY run ORDER BY SUM(syncs) DESC, seed)
  ),
  -- Each request with the number of its group: 0 for empty ones, -1 for others.
  member AS (
    SELECT
      request.*,
      CASE
        WHEN bytes > 0 THEN COALESCE(numbered.number, -1)
        ELSE 0
      END AS number
    FROM request
    LEFT JOIN connected USING (run, x, y)
    LEFT JOIN numbered USING (run, seed)
  ),
  -- The longest request of each group has place 1.
  ranked_member AS (
    SELECT *, ROW_NUMBER() OVER longest_first AS place
    FROM member
    WINDOW
      longest_first AS (PARTITION BY run, number ORDER BY dur_ns DESC, sync_id)
  ),
  -- The figures of each group.
  grouped AS (
    SELECT
      run, number,
      COUNT(*) AS syncs,
      SUM(dur_ns) AS dur_ns,
      MIN(bytes) AS min_bytes,
      MAX(bytes) AS max_bytes,
      MIN(writeback_ns) AS writeback_min_ns,
      AVG(writeback_ns) AS writeback_avg_ns,
      MAX(writeback_ns) AS writeback_max_ns,
      AVG(dur_ns) AS duration_avg_ns,
      AVG(bios) AS bios_avg,
      MAX(CASE WHEN place = 1 THEN sync_id END) AS sync_id
    FROM ranked_member
    GROUP BY run, number
  ),
  -- When each request was under writeback. An empty one never was.
  writeback AS (
    SELECT
      run, sync_id, number,
      COALESCE(dev, '') AS dev,
      writeback_begin_ns AS ts_ns,
      writeback_ns AS dur_ns
    FROM member
    WHERE bytes > 0 AND writeback_ns > 0
  ),
  -- The commits of each device, which count for requests of that device. Where
  -- a recording does not say of which one a commit is, it counts for all.
  commits AS (
    SELECT of!(journal, (run, ts_ns, dur_ns)), own.dev AS dev
    FROM syncline_journal AS journal
    JOIN (SELECT DISTINCT run, dev FROM writeback) AS own
      ON own.run = journal.run
      AND own.dev = COALESCE(journal.dev, own.dev)
    WHERE journal.kind = 'commit'
  ),
  -- All bios of no request, so also reads and bios of commits.
  other_bio AS (
    SELECT run, ts_ns, dur_ns FROM syncline_bio WHERE sync_id IS NULL
  ),
  -- Whether a commit of its device, or a bio of no request, was in flight
  -- during the writeback of each request.
  with_commit AS (
    SELECT * FROM overlapped!(writeback, sync_id, commits, (run, dev))
  ),
  with_other AS (
    SELECT * FROM overlapped!(writeback, sync_id, other_bio, (run))
  ),
  -- Both. It is not known of commits where none of the device is recorded, and
  -- of bios where none is.
  met AS (
    SELECT
      of!(writeback, (run, number)),
      CASE
        WHEN committing.run IS NOT NULL THEN with_commit.has_overlap
      END AS by_commit,
      CASE
        WHEN with_bios.run IS NOT NULL THEN with_other.has_overlap
      END AS by_other
    FROM writeback
    JOIN with_commit USING (run, sync_id)
    JOIN with_other USING (run, sync_id)
    LEFT JOIN (SELECT DISTINCT run, dev FROM commits) AS committing
      ON same!(committing, writeback, (run, dev))
    LEFT JOIN (SELECT DISTINCT run FROM syncline_bio) AS with_bios
      ON with_bios.run = writeback.run
  ),
  busy AS (
    SELECT
      run, number,
      AVG(by_commit) AS commit_share,
      AVG(by_other) AS others_share
    FROM met
    GROUP BY run, number
  ),
  -- How long each group was in each phase.
  spent AS (
    SELECT run, member.number, phase, SUM(phase.dur_ns) AS time_ns
    FROM member
    JOIN syncline_phase AS phase USING (run, sync_id)
    GROUP BY run, member.number, phase
  ),
  -- The phases of each group, the one that took the most time at place 1.
  main_phase AS (
    SELECT
      run, number, phase,
      share!(time_ns, SUM(time_ns) OVER (PARTITION BY run, number)) AS share,
      ROW_NUMBER() OVER (
        PARTITION BY run, number
        ORDER BY time_ns DESC, phase
      ) AS place
    FROM spent
  ),
  -- What may set the requests of a group apart from the others: a row for each
  -- request of which a property is known. `name` is null if it is another one.
  property AS (
    SELECT run, number, 'op' AS kind, 'op ' || op AS name
    FROM member
    WHERE op IS NOT NULL
    UNION ALL
    SELECT run, number, 'file', 'file ' || path
    FROM member
    WHERE path IS NOT NULL
    UNION ALL
    SELECT run, number, 'thread', 'thread ' || comm
    FROM member
    WHERE comm IS NOT NULL
    UNION ALL
    SELECT
      run, number, 'wait',
      CASE WHEN journal_ns > 0 THEN 'waited for a commit' END
    FROM member
    WHERE journal_ns IS NOT NULL
    UNION ALL
    SELECT run, number, 'ranges', CASE WHEN ranges > 1 THEN 'several ranges' END
    FROM member
    WHERE bytes > 0 AND ranges IS NOT NULL
    UNION ALL
    SELECT run, number, 'bios', CASE WHEN bios > 1 THEN 'several bios' END
    FROM member
    WHERE bytes > 0 AND bios IS NOT NULL
    UNION ALL
    SELECT
      run, number, 'commit',
      CASE WHEN by_commit = 1 THEN 'a commit during its writeback' END
    FROM met
    WHERE by_commit IS NOT NULL
    UNION ALL
    SELECT
      run, number, 'others',
      CASE WHEN by_other = 1 THEN 'a bio of no sync in flight' END
    FROM met
    WHERE by_other IS NOT NULL
  ),
  -- How often each group has a property, and how often the others have it.
  difference AS (SELECT * FROM differences!(property)),
  -- Properties of each group, from the one that differs most. Rounding keeps an
  -- error in the last digit from ordering two engines differently.
  ranked AS (
    SELECT
      run, number,
      name || ' ' || percent!(here) || ' (elsewhere ' || percent!(elsewhere)
      || ')' AS text,
      ROW_NUMBER() OVER (
        PARTITION BY run, number
        ORDER BY ROUND(ABS(here - elsewhere), 9) DESC, name
      ) AS place
    FROM difference
    WHERE ABS(here - elsewhere) >= 0.1
  ),
  -- The three that differ most, in one text.
  described AS (
    SELECT run, number, STRING_AGG(text, '; ' ORDER BY place) AS differs
    FROM ranked
    WHERE place <= 3
    GROUP BY run, number
  )
SELECT
  CASE WHEN number > 0 THEN number END AS number,
  CASE number
    WHEN 0 THEN 'empty'
    WHEN -1 THEN 'others'
    ELSE 'group'
  END AS kind,
  syncs,
  share!(syncs, requests) AS share,
  share!(dur_ns, time_ns) AS time_share,
  min_bytes, max_bytes, writeback_min_ns, writeback_avg_ns, writeback_max_ns,
  duration_avg_ns, bios_avg, differs, commit_share, others_share,
  main_phase.phase AS main_phase,
  main_phase.share AS phase_share,
  sync_id, run
FROM grouped
JOIN run_total USING (run)
LEFT JOIN busy USING (run, number)
LEFT JOIN described USING (run, number)
LEFT JOIN main_phase USING (run, number)
WHERE COALESCE(main_phase.place, 1) = 1
ORDER BY run, grouped.number <= 0, ABS(grouped.number);
