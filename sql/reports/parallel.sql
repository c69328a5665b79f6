-- Parallel: syncs that were in flight at once, by process and by mark.
--
-- A request belongs to its process, or to the name of its thread if the
-- process is unknown, and to each mark during which it begins. The report
-- covers the requests with a known start and end.
--
-- Each process and mark has three kinds of rows:
--   all           Its total.
--   at once       The time with so many syncs in flight.
--   without file  The time that would be saved if the syncs of a file took no
--                 time and all others did not change, which is the time in
--                 which only syncs of that file were in flight. The 5 files
--                 with the most have a row.
--
-- Narrow: kind name number path syncs time_sum_ns wall_ns share parallel_avg
--
-- Columns:
--   scope         text   process or mark.
--   id            id     Process id, or mark_id. Null for a name of threads.
--   name          text   Name of the process or of its thread, or of the mark.
--   kind          text   all, at once or without file.
--   number        count  Number of syncs in flight at once. For all, the
--                        largest.
--   path          text   The file, in rows of the kind without file: as in the
--                        report files.
--   syncs         count  Number of requests, of all and of the file.
--   time_sum_ns   ns     Sum of their durations. In rows of the kind at once,
--                        sum of the time in flight.
--   wall_ns       ns     all: the time with a sync in flight. at once: the
--                        time with so many. without file: the time that would
--                        be saved.
--   share         share  wall_ns as a share of the row of the kind all.
--   parallel_avg  ratio  time_sum_ns / wall_ns, the average number of syncs in
--                        flight at once. Only in rows of the kind all.
--   run           text   Name of the run, if the input holds several.
WITH
  request AS (
    SELECT
      run, pid,
      CASE WHEN pid IS NULL THEN comm END AS comm,
      COALESCE(process, comm) AS name,
      COALESCE(
        path,
        'inode ' || CAST(ino AS TEXT) || ' on ' || dev,
        '[unknown file]'
      ) AS path,
      ts_ns, dur_ns
    FROM syncline_sync
    WHERE dur_ns IS NOT NULL
  ),
  -- Each request in its process, and in each mark during which it begins.
  member AS (
    SELECT run, 'process' AS scope, pid AS id, comm, path, ts_ns, dur_ns
    FROM request
    UNION ALL
    SELECT
      mark.run, 'mark', mark.mark_id, NULL, request.path, request.ts_ns,
      request.dur_ns
    FROM syncline_mark AS mark
    JOIN request
      ON request.run = mark.run
      AND request.ts_ns >= mark.ts_ns
      AND request.ts_ns < mark.ts_ns + mark.dur_ns
  ),
  -- The names of processes and marks.
  label AS (
    SELECT run, 'process' AS scope, pid AS id, MIN(name) AS name
    FROM request
    WHERE pid IS NOT NULL
    GROUP BY run, pid
    UNION ALL
    SELECT run, 'mark', mark_id, name FROM syncline_mark
  ),
  -- For each process or mark, and each number of requests in flight: how long
  -- exactly so many were.
  at_once AS (
    SELECT
      run, scope, id, comm,
      depth AS number,
      SUM(depth * dur_ns) AS time_ns,
      SUM(dur_ns) AS wall_ns
    FROM depth!(member, (run, scope, id, comm))
    WHERE depth > 0
    GROUP BY run, scope, id, comm, depth
  ),
  -- The requests of each file in each process or mark.
  file AS (
    SELECT run, scope, id, comm, path, COUNT(*) AS syncs, SUM(dur_ns) AS time_ns
    FROM member
    GROUP BY run, scope, id, comm, path
  ),
  -- The most that were in flight, and how long at least one was.
  in_flight AS (
    SELECT run, scope, id, comm, MAX(number) AS number, SUM(wall_ns) AS wall_ns
    FROM at_once
    GROUP BY run, scope, id, comm
  ),
  -- The figures of each whole process or mark.
  total AS (
    SELECT
      of!(file, (run, scope, id, comm)),
      COALESCE(MAX(number), 0) AS number,
      SUM(syncs) AS syncs,
      SUM(time_ns) AS time_ns,
      COALESCE(MAX(wall_ns), 0) AS wall_ns
    FROM file
    LEFT JOIN in_flight ON same!(in_flight, file, (run, scope, id, comm))
    GROUP BY file.run, file.scope, file.id, file.comm
  ),
  -- For each file, how long only syncs of it were in flight: the wall time that
  -- would be saved without them. The file with the most has place 1. Requests
  -- of an unknown file are left out, because they may be of several.
  saved AS (
    SELECT
      of!(file, (run, scope, id, comm, path, syncs, time_ns)),
      only_time.only_ns AS wall_ns,
      ROW_NUMBER() OVER (
        PARTITION BY file.run, file.scope, file.id, file.comm
        ORDER BY only_time.only_ns DESC, file.path
      ) AS place
    FROM only_time!(member, path, (run, scope, id, comm)) AS only_time
    JOIN file ON same!(file, only_time, (run, scope, id, comm, path))
    WHERE file.path <> '[unknown file]'
  ),
  -- The rows of the result. They are in the order of `kind_place`, and then of
  -- `number`: how many were in flight, or the place of the file.
  part AS (
    SELECT
      run, scope, id, comm,
      0 AS kind_place,
      'all' AS kind,
      number,
      NULL AS path,
      syncs, time_ns, wall_ns,
      share!(time_ns, wall_ns) AS average
    FROM total
    UNION ALL
    SELECT
      run, scope, id, comm, 1, 'at once', number, NULL, NULL, time_ns, wall_ns,
      NULL
    FROM at_once
    UNION ALL
    SELECT
      run, scope, id, comm, 2, 'without file', place, path, syncs, time_ns,
      wall_ns, NULL
    FROM saved
    WHERE place <= 5
  )
SELECT
  part.scope AS scope,
  part.id AS id,
  COALESCE(label.name, part.comm) AS name,
  part.kind AS kind,
  CASE WHEN part.kind <> 'without file' THEN part.number END AS number,
  part.path AS path,
  part.syncs AS syncs,
  CAST(part.time_ns AS BIGINT) AS time_sum_ns,
  CAST(part.wall_ns AS BIGINT) AS wall_ns,
  share!(part.wall_ns, total.wall_ns) AS share,
  part.average AS parallel_avg,
  part.run AS run
FROM part
JOIN total ON same!(total, part, (run, scope, id, comm))
LEFT JOIN label ON same!(label, part, (run, scope, id))
ORDER BY
  part.run,
  part.scope DESC,
  total.wall_ns DESC,
  part.id NULLS LAST,
  COALESCE(label.name, part.comm) NULLS LAST,
  part.kind_place,
  part.number;
