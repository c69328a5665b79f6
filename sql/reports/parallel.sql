-- Parallel: syncs that were in flight at once, by process and by mark.
--
-- A request belongs to its process, or to the name of its thread if the process
-- is unknown, and to each mark during which it begins. Covers the requests with
-- a known start and end. Of each process and mark there are three kinds of
-- rows: all is its total, at once the time with so many syncs in flight, and
-- without file what the wall time would be shorter by if the syncs of a file
-- took no time and all others did not change. This is the time in which
-- only syncs of that file were in flight. The files have the 5 largest.
--
-- Columns:
--   scope         text   process or mark.
--   id            id     Process id, or mark_id. Null for a name of threads.
--   name          text   Name of the process or of its thread, or of the mark.
--   kind          text   all, at once or without file.
--   number        count  Number of syncs in flight at once. For all, the
--                        largest.
--   path          text   Of without file: the file, as in the report files.
--   syncs         count  Number of requests, of all and of the file.
--   time_sum_ns   ns     Sum of their durations. Of at once, of the time in
--                        flight.
--   wall_ns       ns     Of all, the time with a sync in flight; of at once,
--                        the time with so many; of without file, the time that
--                        would be saved.
--   share         share  wall_ns / that of all.
--   parallel_avg  ratio  Of all: time_sum_ns / wall_ns, the average number of
--                        syncs in flight at once.
--   run           text   Name of the run, if the input holds several.
WITH
  label AS (
    SELECT
      run,
      'process' AS scope,
      pid AS id,
      COALESCE(MIN(process), MIN(comm)) AS name
    FROM syncline_sync
    WHERE
      pid IS NOT NULL
      AND dur_ns IS NOT NULL
    GROUP BY run, pid
    UNION ALL
    SELECT run, 'mark', mark_id, name FROM syncline_mark
  ),
  file AS MATERIALIZED (
    SELECT run, path, ROW_NUMBER() OVER (PARTITION BY run ORDER BY path) AS file
    FROM (
      SELECT DISTINCT
        run,
        COALESCE(
          path,
          'inode ' || CAST(ino AS TEXT) || ' on ' || dev,
          '[unknown file]'
        ) AS path
      FROM syncline_sync
      WHERE dur_ns IS NOT NULL
    ) AS found
  ),
  -- CROSS JOIN makes SQLite look up the number of each path.
  request AS NOT MATERIALIZED (
    SELECT
      sync.run AS run,
      sync.pid AS pid,
      CASE WHEN sync.pid IS NULL THEN sync.comm END AS comm,
      file.file AS file,
      sync.ts_ns AS ts_ns,
      sync.ts_ns + sync.dur_ns AS end_ns
    FROM syncline_sync AS sync
    CROSS JOIN file
    WHERE
      sync.dur_ns IS NOT NULL
      AND file.run = sync.run
      AND file.path
      = COALESCE(
        sync.path,
        'inode ' || CAST(sync.ino AS TEXT) || ' on ' || sync.dev,
        '[unknown file]'
      )
  ),
  member AS MATERIALIZED (
    SELECT run, 'process' AS scope, pid AS id, comm, file, ts_ns, end_ns
    FROM request
    UNION ALL
    SELECT
      mark.run,
      'mark',
      mark.mark_id,
      NULL,
      request.file,
      request.ts_ns,
      request.end_ns
    -- CROSS JOIN makes SQLite look up the requests of each mark by time.
    FROM syncline_mark AS mark
    CROSS JOIN request
    WHERE
      request.run = mark.run
      AND request.ts_ns >= mark.ts_ns
      AND request.ts_ns < mark.ts_ns + mark.dur_ns
  ),
  -- With the sum of the file numbers and of their squares, it is known whether
  -- all syncs in flight are of one file: only then n * squares = sum * sum.
  edge AS NOT MATERIALIZED (
    SELECT
      run,
      scope,
      id,
      comm,
      -- 2^36 ns, about a minute.
      ts_ns - ts_ns % 68719476736 AS minute_ns,
      ts_ns AS edge_ns,
      1 AS syncs,
      file AS files,
      file * file AS squares
    FROM member
    UNION ALL
    SELECT
      run,
      scope,
      id,
      comm,
      end_ns - end_ns % 68719476736,
      end_ns,
      -1,
      -file,
      -file * file
    FROM member
  ),
  minute AS (
    SELECT
      run,
      scope,
      id,
      comm,
      minute_ns,
      SUM(syncs) AS syncs,
      SUM(files) AS files,
      SUM(squares) AS squares
    FROM edge
    GROUP BY run, scope, id, comm, minute_ns
  ),
  -- What is in flight when a minute begins.
  before AS MATERIALIZED (
    SELECT
      run,
      scope,
      id,
      comm,
      minute_ns,
      (LEAD(minute_ns) OVER in_order) AS next_ns,
      (SUM(syncs) OVER in_order) - syncs AS syncs,
      (SUM(files) OVER in_order) - files AS files,
      (SUM(squares) OVER in_order) - squares AS squares
    FROM minute
    WINDOW
      in_order AS (PARTITION BY run, scope, id, comm ORDER BY minute_ns)
  ),
  -- An engine keeps the rows of a window in memory. So a window is of a minute.
  -- It begins with what is in flight, and ends when the next one begins.
  windowed AS (
    SELECT run, scope, id, comm, minute_ns, edge_ns, syncs, files, squares
    FROM edge
    UNION ALL
    SELECT run, scope, id, comm, minute_ns, minute_ns, syncs, files, squares
    FROM before
    UNION ALL
    SELECT run, scope, id, comm, minute_ns, next_ns, 0, 0, 0
    FROM before
    WHERE next_ns IS NOT NULL
  ),
  -- Edges at the same time are added together: only the last one has a gap.
  flight AS (
    SELECT
      run,
      scope,
      id,
      comm,
      CAST(SUM(syncs) OVER in_order AS BIGINT) AS syncs,
      CAST(SUM(files) OVER in_order AS BIGINT) AS files,
      CAST(SUM(squares) OVER in_order AS BIGINT) AS squares,
      (LEAD(edge_ns) OVER in_order) - edge_ns AS gap_ns
    FROM windowed
    WINDOW
      in_order AS (
        PARTITION BY run, scope, id, comm, minute_ns
        ORDER BY edge_ns
      )
  ),
  span AS MATERIALIZED (
    SELECT run, scope, id, comm, syncs, file, SUM(gap_ns) AS gap_ns
    FROM (
      SELECT
        run,
        scope,
        id,
        comm,
        syncs,
        CASE
          WHEN syncs = 1 THEN files
          WHEN syncs * squares = files * files THEN files / syncs
        END AS file,
        gap_ns
      FROM flight
      WHERE
        syncs > 0
        AND gap_ns > 0
    ) AS one
    GROUP BY run, scope, id, comm, syncs, file
  ),
  of_file AS MATERIALIZED (
    SELECT
      run,
      scope,
      id,
      comm,
      file,
      COUNT(*) AS syncs,
      SUM(end_ns - ts_ns) AS time_sum_ns
    FROM member
    GROUP BY run, scope, id, comm, file
  ),
  total AS (
    SELECT
      run,
      scope,
      id,
      comm,
      SUM(syncs) AS syncs,
      SUM(time_sum_ns) AS time_sum_ns
    FROM of_file
    GROUP BY run, scope, id, comm
  ),
  wall AS MATERIALIZED (
    SELECT run, scope, id, comm, SUM(gap_ns) AS wall_ns, MAX(syncs) AS number
    FROM span
    GROUP BY run, scope, id, comm
  ),
  saved AS (
    SELECT run, scope, id, comm, file, SUM(gap_ns) AS wall_ns
    FROM span
    WHERE file IS NOT NULL
    GROUP BY run, scope, id, comm, file
  ),
  ranked AS (
    SELECT
      saved.run AS run,
      saved.scope AS scope,
      saved.id AS id,
      saved.comm AS comm,
      file.path AS path,
      of_file.syncs AS syncs,
      of_file.time_sum_ns AS time_sum_ns,
      saved.wall_ns AS wall_ns,
      ROW_NUMBER() OVER (
        PARTITION BY saved.run, saved.scope, saved.id, saved.comm
        ORDER BY saved.wall_ns DESC, file.path
      ) AS place
    FROM saved
    JOIN of_file
      ON of_file.run = saved.run
      AND of_file.scope = saved.scope
      AND of_file.id IS NOT DISTINCT FROM saved.id
      AND of_file.comm IS NOT DISTINCT FROM saved.comm
      AND of_file.file = saved.file
    JOIN file ON file.run = saved.run AND file.file = saved.file
    -- Requests without a path may be of several files.
    WHERE file.path <> '[unknown file]'
  ),
  part AS (
    SELECT
      run,
      scope,
      id,
      comm,
      1 AS place,
      'at once' AS kind,
      syncs AS number,
      CAST(NULL AS TEXT) AS path,
      CAST(NULL AS BIGINT) AS syncs,
      SUM(syncs * gap_ns) AS time_sum_ns,
      SUM(gap_ns) AS wall_ns,
      syncs AS position
    FROM span
    GROUP BY run, scope, id, comm, syncs
    UNION ALL
    SELECT
      run,
      scope,
      id,
      comm,
      2,
      'without file',
      NULL,
      path,
      syncs,
      time_sum_ns,
      wall_ns,
      place
    FROM ranked
    WHERE place <= 5
    UNION ALL
    SELECT
      total.run,
      total.scope,
      total.id,
      total.comm,
      0,
      'all',
      COALESCE(wall.number, 0),
      NULL,
      total.syncs,
      total.time_sum_ns,
      COALESCE(wall.wall_ns, 0),
      0
    FROM total
    LEFT JOIN wall
      ON wall.run = total.run
      AND wall.scope = total.scope
      AND wall.id IS NOT DISTINCT FROM total.id
      AND wall.comm IS NOT DISTINCT FROM total.comm
  )
SELECT
  part.scope AS scope,
  part.id AS id,
  COALESCE(label.name, part.comm) AS name,
  part.kind AS kind,
  part.number AS number,
  part.path AS path,
  part.syncs AS syncs,
  CAST(part.time_sum_ns AS BIGINT) AS time_sum_ns,
  CAST(part.wall_ns AS BIGINT) AS wall_ns,
  CAST(part.wall_ns AS DOUBLE) / NULLIF(wall.wall_ns, 0) AS share,
  CASE
    WHEN part.kind = 'all' THEN CAST(part.time_sum_ns AS DOUBLE)
    / NULLIF(part.wall_ns, 0)
  END AS parallel_avg,
  part.run AS run
FROM part
LEFT JOIN wall
  ON wall.run = part.run
  AND wall.scope = part.scope
  AND wall.id IS NOT DISTINCT FROM part.id
  AND wall.comm IS NOT DISTINCT FROM part.comm
LEFT JOIN label
  ON label.run = part.run
  AND label.scope = part.scope
  AND label.id = part.id
ORDER BY
  part.run,
  part.scope DESC,
  COALESCE(wall.wall_ns, 0) DESC,
  part.id NULLS LAST,
  COALESCE(label.name, part.comm) NULLS LAST,
  part.place,
  part.position;
