-- Total: how many syncs the input has, and how long they waited.
--
-- One row for each `part`: all syncs, those of programs, and those by threads
-- of the kernel, which a driver or a server makes for others. A sync is a
-- call with all its `requests`; `whole` counts those of whole file systems,
-- which have no file. `known` counts the syncs whose start and end are known:
-- the times cover these. `wall_ns` is the time in which at least one of them
-- was in flight, `span_ns` the time from the start of the first sync to the end
-- of the last one, or to its start if its end is not known; both are sums over
-- the runs. `unseen` counts the runs that do not show syncs, of all `all_runs`:
-- they have no event of a sync or a sync call.
WITH
  kernel_comm AS (
    SELECT comm
    FROM (SELECT DISTINCT comm FROM syncline_sync) AS found
    WHERE is_kernel_thread!(comm)
  ),
  sync AS (
    SELECT
      call.*,
      CASE
        WHEN call.op IS NULL
        AND call.comm IN (SELECT comm FROM kernel_comm) THEN 'kernel'
        ELSE 'programs'
      END AS part
    FROM syncline_sync_call AS call
  ),
  of_part AS (
    SELECT 'all' AS part, run, tid, what, ts_ns, dur_ns, requests FROM sync
    UNION ALL
    SELECT part, run, tid, what, ts_ns, dur_ns, requests FROM sync
  ),
  reach AS (
    SELECT
      part, run, tid, what, ts_ns, dur_ns, requests,
      ts_ns + dur_ns AS end_ns,
      -- The latest end of the earlier ones.
      MAX(ts_ns + dur_ns) OVER (
        PARTITION BY part, run
        ORDER BY ts_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ns
    FROM of_part
  ),
  by_run AS (
    SELECT
      part, run,
      COUNT(*) AS syncs,
      SUM(requests) AS requests,
      SUM(CASE WHEN what LIKE '%whole%' THEN 1 ELSE 0 END) AS whole,
      COUNT(dur_ns) AS known,
      COUNT(DISTINCT tid) AS threads,
      SUM(dur_ns) AS time_ns,
      SUM(
        CASE
          WHEN reached_ns IS NULL
          OR reached_ns <= ts_ns THEN dur_ns
          WHEN reached_ns < end_ns THEN end_ns - reached_ns
          ELSE 0
        END
      ) AS wall_ns,
      MAX(COALESCE(end_ns, ts_ns)) - MIN(ts_ns) AS span_ns
    FROM reach
    GROUP BY part, run
  ),
  place(part) AS (VALUES ('all'), ('programs'), ('kernel')),
  file AS (
    SELECT
      COALESCE(path, dev || ':' || CAST(ino AS TEXT)) AS file,
      CASE
        WHEN op IS NULL
        AND comm IN (SELECT comm FROM kernel_comm) THEN 'kernel'
        ELSE 'programs'
      END AS part
    FROM syncline_sync
  )
SELECT
  place.part AS part,
  COUNT(by_run.run) AS runs,
  CAST(COALESCE(SUM(syncs), 0) AS BIGINT) AS syncs,
  CAST(COALESCE(SUM(requests), 0) AS BIGINT) AS requests,
  CAST(COALESCE(SUM(whole), 0) AS BIGINT) AS whole,
  CAST(COALESCE(SUM(known), 0) AS BIGINT) AS known,
  CAST(SUM(threads) AS BIGINT) AS threads,
  (
    SELECT COUNT(DISTINCT file.file)
    FROM file
    WHERE place.part = 'all' OR file.part = place.part
  ) AS files,
  CAST(SUM(time_ns) AS BIGINT) AS time_ns,
  CAST(SUM(wall_ns) AS BIGINT) AS wall_ns,
  CAST(SUM(span_ns) AS BIGINT) AS span_ns,
  (
    SELECT COUNT(DISTINCT run)
    FROM syncline_meta
    WHERE key = 'syncs_recorded' AND value = 'no'
  ) AS unseen,
  (SELECT COUNT(DISTINCT run) FROM syncline_meta) AS all_runs
FROM place
LEFT JOIN by_run ON by_run.part = place.part
GROUP BY place.part
ORDER BY place.part;
