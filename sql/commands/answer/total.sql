-- Total: how many syncs the input has, and how long they waited.
--
-- One row for each `part`: all syncs, those of programs, and those by threads
-- of the kernel, which a driver or a server makes for others. A sync is a
-- call with all its `requests`; `whole` counts those of whole file systems,
-- which have no file, and `ranges` those by sync_file_range, which makes
-- nothing durable. `known` counts the syncs whose start and end are known:
-- the times cover these. `wall_ns` is the time in which at least one of them
-- was in flight, null if times are so coarse that nobody knows what overlaps,
-- `span_ns` the time from the start of the first sync to the end
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
    SELECT 'all' AS part, run, tid, what, op, ts_ns, dur_ns, requests FROM sync
    UNION ALL
    SELECT part, run, tid, what, op, ts_ns, dur_ns, requests FROM sync
  ),
  by_run AS (
    SELECT
      part, run,
      SUM(requests) AS requests,
      SUM(CASE WHEN what LIKE '%whole%' THEN 1 ELSE 0 END) AS whole,
      SUM(CASE WHEN op = 'sync_file_range' THEN 1 ELSE 0 END) AS ranges,
      COUNT(DISTINCT tid) AS threads,
      MAX(ts_ns + COALESCE(dur_ns, 0)) - MIN(ts_ns) AS span_ns
    FROM of_part
    GROUP BY part, run
  ),
  times AS (
    SELECT COUNT(*) AS coarse
    FROM syncline_meta
    WHERE key = 'time_resolution_ns' AND CAST(value AS BIGINT) >= 1000000
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
  CAST(COALESCE(SUM(intervals), 0) AS BIGINT) AS syncs,
  CAST(COALESCE(SUM(requests), 0) AS BIGINT) AS requests,
  CAST(COALESCE(SUM(whole), 0) AS BIGINT) AS whole,
  CAST(COALESCE(SUM(ranges), 0) AS BIGINT) AS ranges,
  CAST(COALESCE(SUM(known), 0) AS BIGINT) AS known,
  CAST(SUM(threads) AS BIGINT) AS threads,
  (
    SELECT COUNT(DISTINCT file.file)
    FROM file
    WHERE place.part = 'all' OR file.part = place.part
  ) AS files,
  CAST(SUM(time_ns) AS BIGINT) AS time_ns,
  CASE
    WHEN (SELECT coarse FROM times) = 0 THEN CAST(SUM(wall_ns) AS BIGINT)
  END AS wall_ns,
  CAST(SUM(span_ns) AS BIGINT) AS span_ns,
  (
    SELECT COUNT(DISTINCT run)
    FROM syncline_meta
    WHERE key = 'syncs_recorded' AND value = 'no'
  ) AS unseen,
  (SELECT COUNT(DISTINCT run) FROM syncline_meta) AS all_runs
FROM place
LEFT JOIN by_run ON by_run.part = place.part
LEFT JOIN wall_time!(of_part, (part, run)) AS spent
  ON spent.part = by_run.part
  AND spent.run = by_run.run
GROUP BY place.part
ORDER BY place.part;
