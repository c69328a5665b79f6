-- Files: the cost of the syncs of each file.
--
-- Latencies are syscall latencies of the syncs that have one. A sync
-- without a syscall (io_uring, O_DSYNC) has none: its cost is in
-- sync_time_sum_ns, which covers all syncs with a known start and end. Bytes
-- cover all syncs. The file with the highest cost comes first. A sync of
-- several files, or of whole file systems, is in a row of its kind.
--
-- Columns:
--   path              text   Path of the file, `inode N on MAJOR,MINOR` if only
--                            that is recorded, [several files],
--                            [whole file systems], or [unknown file].
--   syncs             count  Number of syncs.
--   empty             count  Number of syncs whose start and end were
--                            recorded, that succeeded and that
--                            caused no bio.
--   bytes             bytes  Bytes written back for them.
--   latency_sum_ns    ns     Sum of the syscall latencies.
--   latency_avg_ns    ns     Average syscall latency.
--   latency_p99_ns    ns     99th percentile, interpolated.
--   latency_max_ns    ns     Maximum syscall latency.
--   writeback_sum_ns  ns     Sum of the known writeback latencies. Null if only
--                            those of empty syncs are known.
--   sync_time_sum_ns  ns     Sum of the durations, from the call (from the
--                            start without a call) to the end.
--   threads           count  Number of threads (of processes, if no thread is
--                            known).
--   incomplete        count  Number of syncs whose start, end, call, or a
--                            bio is not in the log.
--   container_path    text   Path of the file in the container that syncs it.
--                            Null outside of containers and if unknown.
WITH
  request AS NOT MATERIALIZED (
    SELECT
      COALESCE(
        path,
        'inode ' || CAST(ino AS TEXT) || ' on ' || dev,
        '[' || what || ']',
        '[unknown file]'
      ) AS path,
      container_path, run, tid, pid, bios, incomplete, ret, bytes, syscall_ns,
      writeback_ns, dur_ns
    FROM syncline_sync_call
  ),
  file AS (
    SELECT
      path,
      MIN(container_path) AS container_path,
      COUNT(*) AS syncs,
      -- Unknown, not 0, if only calls were recorded.
      CASE
        WHEN COUNT(bios) > 0 THEN SUM(
          CASE
            WHEN incomplete IN ('start', 'end') THEN 0
            WHEN bios = 0
            AND COALESCE(ret, 0) >= 0 THEN 1
            ELSE 0
          END
        )
      END AS empty,
      COUNT(incomplete) AS incomplete,
      SUM(bytes) AS bytes,
      COUNT(syscall_ns) AS latencies,
      SUM(syscall_ns) AS latency_sum_ns,
      MAX(syscall_ns) AS latency_max_ns,
      -- Unknown, not 0, if only empty syncs have one and others do not.
      CASE
        WHEN MAX(CASE WHEN bios > 0 THEN 1 END) IS NULL
        OR COUNT(CASE WHEN bios > 0 THEN writeback_ns END) > 0 THEN SUM(
          writeback_ns
        )
      END AS writeback_sum_ns,
      SUM(dur_ns) AS sync_time_sum_ns
    FROM request
    GROUP BY path
  ),
  thread AS (
    SELECT path, run, tid, pid FROM request GROUP BY path, run, tid, pid
  ),
  threads AS (SELECT path, COUNT(*) AS threads FROM thread GROUP BY path),
  latency AS NOT MATERIALIZED (
    SELECT path, syscall_ns - syscall_ns % 65536 AS slice_start, syscall_ns
    FROM request
    WHERE syscall_ns IS NOT NULL
  ),
  -- An engine keeps all values of a percentile in memory. So the values are
  -- counted in slices first, and then one by one in the slices that hold the
  -- percentile.
  slice AS MATERIALIZED (
    SELECT
      path, slice_start,
      COUNT(*) AS latencies,
      (SUM(COUNT(*)) OVER by_start) - COUNT(*) AS before
    FROM latency
    GROUP BY path, slice_start
    WINDOW by_start AS (PARTITION BY path ORDER BY slice_start)
  ),
  -- The percentile is between the value at `position` (from 0) and the next
  -- one. Whole numbers make it exact.
  target AS MATERIALIZED (
    SELECT
      path,
      CAST((hundredths - hundredths % 100) / 100 AS BIGINT) AS position,
      hundredths % 100 AS rest
    FROM (
      SELECT path, 99 * (SUM(latencies) - 1) AS hundredths
      FROM slice
      GROUP BY path
    ) AS exact
  ),
  wanted AS MATERIALIZED (
    SELECT slice.path, slice.slice_start, slice.before
    FROM slice
    JOIN target
      ON target.path = slice.path
      AND slice.before <= target.position + 1
      AND slice.before + slice.latencies > target.position
  ),
  counted AS (
    SELECT wanted.path, wanted.before, latency.syscall_ns, COUNT(*) AS latencies
    -- CROSS JOIN makes SQLite look up the few slices of each value.
    FROM latency
    CROSS JOIN wanted
    WHERE
      wanted.path = latency.path
      AND wanted.slice_start = latency.slice_start
    GROUP BY wanted.path, wanted.before, latency.syscall_ns
  ),
  ordered AS MATERIALIZED (
    SELECT
      path, syscall_ns, latencies, before
      + (SUM(latencies) OVER (PARTITION BY path, before ORDER BY syscall_ns))
      - latencies AS before
    FROM counted
  ),
  quantile AS (
    SELECT
      target.path,
      MIN(ordered.syscall_ns)
      + CAST(MAX(ordered.syscall_ns) - MIN(ordered.syscall_ns) AS DOUBLE)
      * MIN(target.rest)
      / 100 AS latency_p99_ns
    FROM target
    JOIN ordered
      ON ordered.path = target.path
      AND ordered.before <= target.position + 1
      AND ordered.before + ordered.latencies > target.position
    GROUP BY target.path
  )
SELECT
  file.path, file.syncs,
  CAST(file.empty AS BIGINT) AS empty,
  CAST(file.bytes AS BIGINT) AS bytes,
  CAST(file.latency_sum_ns AS BIGINT) AS latency_sum_ns,
  CAST(latency_sum_ns AS DOUBLE) / NULLIF(latencies, 0) AS latency_avg_ns,
  quantile.latency_p99_ns, file.latency_max_ns,
  CAST(file.writeback_sum_ns AS BIGINT) AS writeback_sum_ns,
  CAST(file.sync_time_sum_ns AS BIGINT) AS sync_time_sum_ns,
  threads.threads, file.incomplete, file.container_path
FROM file
JOIN threads ON threads.path = file.path
LEFT JOIN quantile ON quantile.path = file.path
ORDER BY COALESCE(file.sync_time_sum_ns, 0) DESC, file.bytes DESC, file.path;
