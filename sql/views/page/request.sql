-- Syncs as the page of `report --html` counts them: each with the numbers of
-- its file, thread, stack and bins.
--
-- Files and threads are numbered from 0 in the order of the reports `files` and
-- `threads`, stacks and sync calls by frequency. Bins of time are those of the
-- report `over-time`, buckets those of `latency` and `amount`.
WITH RECURSIVE
  span AS MATERIALIZED (
    SELECT run, MIN(ts_ns) AS first_ns, MAX(ts_ns) - MIN(ts_ns) AS length_ns
    FROM syncline_sync_call
    GROUP BY run
  ),
  decade AS (
    SELECT CAST(1 AS BIGINT) AS unit
    UNION ALL
    SELECT unit * 10 FROM decade WHERE unit < 100000000000000000
  ),
  width AS MATERIALIZED (
    SELECT MIN(decade.unit * factor.factor) AS width_ns
    FROM decade
    CROSS JOIN (
      SELECT 1 AS factor
      UNION ALL
      SELECT 2
      UNION ALL
      SELECT 5
    ) AS factor
    WHERE
      decade.unit * factor.factor
      > (SELECT CAST(MAX(length_ns) AS DOUBLE) / 100 FROM span)
  ),
  file AS MATERIALIZED (
    SELECT
      path,
      ROW_NUMBER() OVER (
        ORDER BY COALESCE(SUM(dur_ns), 0) DESC, SUM(bytes) DESC, path
      )
      - 1 AS file
    FROM (
      SELECT
        COALESCE(
          path,
          'inode ' || CAST(ino AS TEXT) || ' on ' || dev,
          '[' || what || ']',
          '[unknown file]'
        ) AS path,
        dur_ns, bytes
      FROM syncline_sync_call
    ) AS named
    GROUP BY path
  ),
  thread AS MATERIALIZED (
    SELECT
      run, tid, pid, comm, process,
      ROW_NUMBER() OVER (
        ORDER BY
          COALESCE(SUM(dur_ns), 0) DESC,
          run,
          tid NULLS LAST,
          pid NULLS LAST,
          comm NULLS LAST,
          process NULLS LAST
      )
      - 1 AS thread
    FROM syncline_sync_call
    GROUP BY run, tid, pid, comm, process
  ),
  operation AS MATERIALIZED (
    SELECT COALESCE(op, 'none') AS op, ROW_NUMBER() OVER by_count - 1 AS place
    FROM syncline_sync_call
    GROUP BY COALESCE(op, 'none')
    WINDOW by_count AS (ORDER BY COUNT(*) DESC, COALESCE(op, 'none'))
  ),
  power AS (
    SELECT CAST(1 AS BIGINT) AS lower_bytes, 1 AS place
    UNION ALL
    SELECT lower_bytes * 2, place + 1
    FROM power
    WHERE lower_bytes < 1125899906842624
  ),
  amount AS MATERIALIZED (
    SELECT written.bytes, MAX(COALESCE(power.place, 0)) AS place
    FROM (SELECT DISTINCT bytes FROM syncline_sync_call) AS written
    LEFT JOIN power ON power.lower_bytes <= written.bytes
    GROUP BY written.bytes
  )
SELECT
  sync.run, sync.sync_id, sync.call_sync_id,
  sync.ts_ns - span.first_ns AS since_ns,
  sync.dur_ns, width.width_ns,
  CAST(((sync.ts_ns - span.first_ns) - (sync.ts_ns - span.first_ns) % width_ns)
  / width_ns AS BIGINT) AS bin,
  file.file, thread.thread,
  CAST(stack.place AS BIGINT) AS stack_place,
  operation.place AS op_place,
  operation.op, sync.syscall_ns, sync.writeback_ns, sync.journal_ns,
  sync.flush_ns, sync.bytes, sync.ranges, sync.bios, sync.ret,
  -- As in the summary: of a request with nothing to attribute it says nothing.
  CASE
    WHEN sync.bios IS NOT NULL
    OR sync.journal_ns IS NOT NULL
    OR sync.flush_ns IS NOT NULL
    OR (sync.op IS NOT NULL AND sync.start_ns IS NOT NULL) THEN sync.confidence
  END AS confidence,
  sync.incomplete,
  -- 0: less than 1 ns. Then three buckets (1, 2, 5) per power of ten.
  CASE
    WHEN sync.syscall_ns IS NULL THEN NULL
    WHEN sync.syscall_ns < 1 THEN 0
    ELSE LENGTH(CAST(sync.syscall_ns AS VARCHAR)) * 3
    - CASE
      WHEN SUBSTR(CAST(sync.syscall_ns AS VARCHAR), 1, 1) < '2' THEN 2
      WHEN SUBSTR(CAST(sync.syscall_ns AS VARCHAR), 1, 1) < '5' THEN 1
      ELSE 0
    END
  END AS syscall_bucket,
  CASE
    WHEN sync.writeback_ns IS NULL THEN NULL
    WHEN sync.writeback_ns < 1 THEN 0
    ELSE LENGTH(CAST(sync.writeback_ns AS VARCHAR)) * 3
    - CASE
      WHEN SUBSTR(CAST(sync.writeback_ns AS VARCHAR), 1, 1) < '2' THEN 2
      WHEN SUBSTR(CAST(sync.writeback_ns AS VARCHAR), 1, 1) < '5' THEN 1
      ELSE 0
    END
  END AS writeback_bucket,
  CASE
    WHEN sync.journal_ns IS NULL THEN NULL
    WHEN sync.journal_ns < 1 THEN 0
    ELSE LENGTH(CAST(sync.journal_ns AS VARCHAR)) * 3
    - CASE
      WHEN SUBSTR(CAST(sync.journal_ns AS VARCHAR), 1, 1) < '2' THEN 2
      WHEN SUBSTR(CAST(sync.journal_ns AS VARCHAR), 1, 1) < '5' THEN 1
      ELSE 0
    END
  END AS journal_bucket,
  -- Null if the start or end is missing, because the log may not hold the whole
  -- amount. 0: less than 1 byte.
  CASE
    WHEN sync.incomplete IS NULL THEN amount.place
    WHEN sync.incomplete IN ('call', 'bio') THEN amount.place
  END AS amount_bucket
FROM syncline_sync_call AS sync
JOIN span ON span.run = sync.run
CROSS JOIN width
JOIN file
  ON file.path
  = COALESCE(
    sync.path,
    'inode ' || CAST(sync.ino AS TEXT) || ' on ' || sync.dev,
    '[' || sync.what || ']',
    '[unknown file]'
  )
JOIN thread
  ON thread.run = sync.run
  AND thread.tid IS NOT DISTINCT FROM sync.tid
  AND thread.pid IS NOT DISTINCT FROM sync.pid
  AND thread.comm IS NOT DISTINCT FROM sync.comm
  AND thread.process IS NOT DISTINCT FROM sync.process
JOIN operation ON operation.op = COALESCE(sync.op, 'none')
LEFT JOIN _page_stack AS stack ON stack.stack = sync.stack
LEFT JOIN amount ON amount.bytes = sync.bytes;
