-- Seen: the number of threads, processes, devices, file systems, files and
-- operations, and the five of each with the most syncs, unmatched calls and
-- bios. `requests` are those of the block layer, which stand for bios that are
-- not recorded.
--
-- A thread counts if it syncs or submits a bio, not if it was on the CPU when a
-- bio completed.
WITH
  part AS (
    SELECT
      'thread' AS what,
      run || ':' || CAST(tid AS TEXT) AS item,
      tid AS number,
      comm AS name,
      COUNT(*) AS syncs,
      0 AS unmatched_calls,
      0 AS bios,
      0 AS requests
    FROM syncline_sync
    WHERE tid IS NOT NULL
    GROUP BY run, tid, comm
    UNION ALL
    SELECT
      'thread',
      run || ':' || CAST(tid AS TEXT),
      tid, comm, 0,
      COUNT(*),
      0, 0
    FROM syncline_call
    WHERE tid IS NOT NULL AND unmatched
    GROUP BY run, tid, comm
    UNION ALL
    SELECT
      'thread',
      run || ':' || CAST(tid AS TEXT),
      tid, comm, 0, 0,
      SUM(CASE WHEN is_request THEN 0 ELSE 1 END),
      SUM(CASE WHEN is_request THEN 1 ELSE 0 END)
    FROM syncline_bio
    WHERE tid IS NOT NULL
    GROUP BY run, tid, comm
    UNION ALL
    SELECT
      'process',
      run || ':' || CAST(pid AS TEXT),
      pid,
      COALESCE(process, comm),
      COUNT(*),
      0, 0, 0
    FROM syncline_sync
    WHERE pid IS NOT NULL
    GROUP BY run, pid, COALESCE(process, comm)
    UNION ALL
    SELECT
      'process',
      run || ':' || CAST(pid AS TEXT),
      pid, comm, 0,
      COUNT(*),
      0, 0
    FROM syncline_call
    WHERE pid IS NOT NULL AND unmatched
    GROUP BY run, pid, comm
    UNION ALL
    SELECT
      'process',
      run || ':' || CAST(pid AS TEXT),
      pid, comm, 0, 0,
      SUM(CASE WHEN is_request THEN 0 ELSE 1 END),
      SUM(CASE WHEN is_request THEN 1 ELSE 0 END)
    FROM syncline_bio
    WHERE pid IS NOT NULL
    GROUP BY run, pid, comm
    UNION ALL
    SELECT 'device', dev, NULL, dev, COUNT(*), 0, 0, 0
    FROM syncline_sync
    WHERE dev IS NOT NULL
    GROUP BY dev
    UNION ALL
    SELECT
      'device', dev, NULL, dev, 0, 0,
      SUM(CASE WHEN is_request THEN 0 ELSE 1 END),
      SUM(CASE WHEN is_request THEN 1 ELSE 0 END)
    FROM syncline_bio
    WHERE dev IS NOT NULL
    GROUP BY dev
    UNION ALL
    SELECT 'file system', fs, NULL, fs, COUNT(*), 0, 0, 0
    FROM syncline_sync
    WHERE fs IS NOT NULL
    GROUP BY fs
    UNION ALL
    SELECT 'file', path, NULL, path, COUNT(*), 0, 0, 0
    FROM syncline_sync
    WHERE path IS NOT NULL
    GROUP BY path
    UNION ALL
    SELECT 'operation', op, NULL, op, COUNT(*), 0, 0, 0
    FROM syncline_sync
    WHERE op IS NOT NULL
    GROUP BY op
    UNION ALL
    SELECT 'operation', op, NULL, op, 0, COUNT(*), 0, 0
    FROM syncline_call
    WHERE op IS NOT NULL AND unmatched
    GROUP BY op
  ),
  seen AS (
    SELECT
      what, item,
      MIN(number) AS number,
      MIN(name) AS name,
      SUM(syncs) AS syncs,
      SUM(unmatched_calls) AS unmatched_calls,
      SUM(bios) AS bios,
      SUM(requests) AS requests
    FROM part
    GROUP BY what, item
  ),
  device_name AS (
    SELECT SUBSTR(key, LENGTH('device_name.') + 1) AS dev, MIN(value) AS name
    FROM syncline_meta
    WHERE key LIKE 'device_name.%'
    GROUP BY key
  ),
  device_on AS (
    SELECT SUBSTR(key, LENGTH('device_on.') + 1) AS dev, MIN(value) AS below
    FROM syncline_meta
    WHERE key LIKE 'device_on.%' AND value <> ''
    GROUP BY key
  ),
  ranked AS (
    SELECT
      what, number, name, syncs, unmatched_calls, bios, requests,
      COUNT(*) OVER (PARTITION BY what) AS total,
      SUM(CASE WHEN syncs + unmatched_calls > 0 THEN 1 ELSE 0 END) OVER (
        PARTITION BY what
      ) AS syncing,
      ROW_NUMBER() OVER (
        PARTITION BY what
        ORDER BY syncs DESC, unmatched_calls DESC, bios + requests DESC, item
      ) AS place
    FROM seen
  )
SELECT
  what, total,
  CAST(syncing AS BIGINT) AS syncing,
  number,
  CASE
    WHEN device_name.name IS NULL THEN ranked.name
    ELSE device_name.name || ' (' || ranked.name || ')'
  END
  || COALESCE(' on ' || device_on.below, '') AS name,
  CAST(syncs AS BIGINT) AS syncs,
  CAST(unmatched_calls AS BIGINT) AS unmatched_calls,
  CAST(bios AS BIGINT) AS bios,
  CAST(requests AS BIGINT) AS requests
FROM ranked
LEFT JOIN device_name
  ON ranked.what = 'device'
  AND device_name.dev = ranked.name
LEFT JOIN device_on ON ranked.what = 'device' AND device_on.dev = ranked.name
WHERE place <= 5
ORDER BY what, place;
