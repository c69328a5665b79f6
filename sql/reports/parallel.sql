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
--   path          text   Of without file: the file.
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
  request AS MATERIALIZED (
    SELECT
      run,
      sync_id,
      pid,
      comm,
      process,
      COALESCE(path, '[unknown file]') AS path,
      ts_ns,
      ts_ns + dur_ns AS end_ns,
      DENSE_RANK() OVER (
        PARTITION BY
          run
        ORDER BY COALESCE(path, '[unknown file]')
      ) AS file
    FROM syncline_sync
    WHERE
      dur_ns IS NOT NULL
  ),
  named AS (
    SELECT run, pid, COALESCE(MIN(process), MIN(comm)) AS name
    FROM request
    WHERE
      pid IS NOT NULL
    GROUP BY
      run,
      pid
  ),
  member AS MATERIALIZED (
    SELECT
      request.run AS run,
      'process' AS scope,
      request.pid AS id,
      COALESCE(named.name, request.comm) AS name,
      path,
      file,
      ts_ns,
      end_ns
    FROM request
    LEFT JOIN named ON named.run = request.run AND named.pid = request.pid
    UNION ALL
    SELECT
      mark.run,
      'mark',
      mark.mark_id,
      mark.name,
      request.path,
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
  edge AS (
    SELECT
      run,
      scope,
      id,
      name,
      ts_ns AS edge_ns,
      1 AS syncs,
      file AS files,
      file * file AS squares
    FROM member
    UNION ALL
    SELECT run, scope, id, name, end_ns, -1, -file, -file * file FROM member
  ),
  moment AS (
    SELECT
      run,
      scope,
      id,
      name,
      edge_ns,
      SUM(syncs) AS syncs,
      SUM(files) AS files,
      SUM(squares) AS squares
    FROM edge
    GROUP BY
      run,
      scope,
      id,
      name,
      edge_ns
  ),
  flight AS (
    SELECT
      run,
      scope,
      id,
      name,
      CAST(SUM(syncs) OVER in_order AS BIGINT) AS syncs,
      CAST(SUM(files) OVER in_order AS BIGINT) AS files,
      CAST(SUM(squares) OVER in_order AS BIGINT) AS squares,
      LEAD(edge_ns) OVER in_order - edge_ns AS gap_ns
    FROM moment
    WINDOW
      in_order AS (PARTITION BY run, scope, id, name ORDER BY edge_ns)
  ),
  span AS MATERIALIZED (
    SELECT
      run,
      scope,
      id,
      name,
      syncs,
      gap_ns,
      CASE
        WHEN syncs = 1 THEN files
        WHEN syncs * squares = files * files THEN files / syncs
      END AS file
    FROM flight
    WHERE
      syncs > 0
      AND gap_ns > 0
  ),
  total AS (
    SELECT
      run,
      scope,
      id,
      name,
      COUNT(*) AS syncs,
      SUM(end_ns - ts_ns) AS time_sum_ns
    FROM member
    GROUP BY
      run,
      scope,
      id,
      name
  ),
  wall AS (
    SELECT run, scope, id, name, SUM(gap_ns) AS wall_ns, MAX(syncs) AS number
    FROM span
    GROUP BY
      run,
      scope,
      id,
      name
  ),
  saved AS (
    SELECT run, scope, id, name, file, SUM(gap_ns) AS wall_ns
    FROM span
    WHERE
      file IS NOT NULL
    GROUP BY
      run,
      scope,
      id,
      name,
      file
  ),
  of_file AS (
    SELECT
      run,
      scope,
      id,
      name,
      file,
      path,
      COUNT(*) AS syncs,
      SUM(end_ns - ts_ns) AS time_sum_ns
    FROM member
    GROUP BY
      run,
      scope,
      id,
      name,
      file,
      path
  ),
  ranked AS (
    SELECT
      saved.run AS run,
      saved.scope AS scope,
      saved.id AS id,
      saved.name AS name,
      of_file.path AS path,
      of_file.syncs AS syncs,
      of_file.time_sum_ns AS time_sum_ns,
      saved.wall_ns AS wall_ns,
      ROW_NUMBER() OVER (
        PARTITION BY
          saved.run,
          saved.scope,
          saved.id,
          saved.name
        ORDER BY saved.wall_ns DESC, of_file.path
      ) AS place
    FROM saved
    JOIN of_file
      ON of_file.run = saved.run
      AND of_file.scope = saved.scope
      AND of_file.id IS NOT DISTINCT FROM saved.id
      AND of_file.name IS NOT DISTINCT FROM saved.name
      AND of_file.file = saved.file
    -- Requests without a path may be of several files.
    WHERE
      of_file.path <> '[unknown file]'
  ),
  part AS (
    SELECT
      run,
      scope,
      id,
      name,
      1 AS place,
      'at once' AS kind,
      syncs AS number,
      CAST(NULL AS TEXT) AS path,
      CAST(NULL AS BIGINT) AS syncs,
      SUM(syncs * gap_ns) AS time_sum_ns,
      SUM(gap_ns) AS wall_ns,
      syncs AS position
    FROM span
    GROUP BY
      run,
      scope,
      id,
      name,
      syncs
    UNION ALL
    SELECT
      run,
      scope,
      id,
      name,
      2,
      'without file',
      NULL,
      path,
      syncs,
      time_sum_ns,
      wall_ns,
      place
    FROM ranked
    WHERE
      place <= 5
    UNION ALL
    SELECT
      total.run,
      total.scope,
      total.id,
      total.name,
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
      AND wall.name IS NOT DISTINCT FROM total.name
  )
SELECT
  part.scope AS scope,
  part.id AS id,
  part.name AS name,
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
  AND wall.name IS NOT DISTINCT FROM part.name
ORDER BY
  part.run,
  part.scope DESC,
  COALESCE(wall.wall_ns, 0) DESC,
  part.id NULLS LAST,
  part.name NULLS LAST,
  part.place,
  part.position;
