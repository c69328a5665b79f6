-- Summary: what the run did and what it cost, one metric a row.
--
-- The metrics of tables 6.1 and 6.2 of the thesis, their distribution, and the
-- real cost of parallel syncs. A row is identified by (metric, scope) in every
-- run, so that two runs can be compared.
--
-- A sync is a call with all its requests: sync() makes one for each file
-- system. `requests` counts them, and is present if a sync made several. If a
-- thread of the kernel made syncs, as of a loop device or of nfsd, `syncs` has
-- them apart: the scopes programs and kernel.
--
-- Syncs that each metric covers (`known` of `syncs`):
-- * Latencies: syncs whose latency is known. An incomplete sync is
--   counted in `syncs` but has no latency. An empty sync has a writeback
--   latency of 0 and is included.
-- * Amounts and empty_share: syncs whose start and end were recorded. An
--   incomplete sync may have written more than the log holds.
--   writeback_amount_sum covers all syncs. None of them covers a call-only
--   request, or one of whole file systems for which flusher threads wrote.
-- * journal_wait: time spent on commits of the journal. flush_wait: time in
--   cache flushes that the syncs issued. Both are present only if the recorder
--   records them, and cover the syncs of file systems that report them.
-- * sync_time_sum is the sum over the syncs, each from its call (from its
--   start if it has no call) to its end. sync_wall_time is the time during
--   which at least one sync was in flight: the real cost of these syncs.
--   parallelism is sync_time_sum / sync_wall_time. All three are per process,
--   because the threads of a process wait for each other. Processes with the
--   same name are added up. If the name of a process is unknown, its scope is
--   the name of one of its threads (comm:NAME, the first in alphabetical
--   order). If no process is known, threads with the same name count as one
--   (also comm:NAME). The 50 names with the largest sync_time_sum have rows of
--   their own. The scope `others` covers the other names together.
-- * attribution_share: confidence in which bio and which call belong to which
--   request, as a share of the syncs that have something to attribute: those
--   whose bios or waits are known, or that have both a call and a start.
-- * ..._per_mark: sum over the syncs that began during a mark, averaged over
--   the marks. Present only if there are marks.
-- * failed_syncs, failed_calls, failed_bios: syncs, calls without a request,
--   and bios that ended with an error. A sync that failed is not empty. The
--   report `failures` lists them.
-- * A high-level log holds only requests. A metric that it does not hold is
--   null, not 0. So is a metric if no sync has a known value.
-- * A recording without an event of a sync, such as a log of blktrace, does not
--   show whether there were syncs, or which bios are of the background. Figures
--   of these are null. Of several runs, those of syncs cover the other ones.
--
-- Columns:
--   metric  text   Name of the metric.
--   scope   text   What the row covers: all, op:NAME, programs, kernel,
--                  process:NAME, comm:NAME, pid:N, others, a confidence, or
--                  what is missing (for incomplete).
--   value   unit   Value of the metric. Null if no sync has a known value.
--   unit    text   Unit of the value: count, ns, bytes, share (of 1) or ratio.
--   known   count  Number of syncs with a known value, which the metric
--                  covers. Null for counts, which leave no sync out. Of
--                  calls without a request for failed_calls, of bios for
--                  failed_bios, of background bios for background_bytes.
--   syncs   count  Number of syncs in the scope, or of such calls or bios.
--                  Null for counts.
WITH
  -- The metrics in the order of the report. The name is measure_statistic.
  metric(place, measure, statistic, unit) AS (
    VALUES
      (1, 'runs', NULL, 'count'),
      (2, 'syncs', NULL, 'count'),
      (3, 'requests', NULL, 'count'),
      (4, 'unique_files', NULL, 'count'),
      (5, 'empty_share', NULL, 'share'),
      (6, 'syscall_latency', 'avg', 'ns'),
      (7, 'syscall_latency', 'p50', 'ns'),
      (8, 'syscall_latency', 'p90', 'ns'),
      (9, 'syscall_latency', 'p99', 'ns'),
      (10, 'syscall_latency', 'p999', 'ns'),
      (11, 'syscall_latency', 'max', 'ns'),
      (12, 'syscall_latency', 'sum', 'ns'),
      (13, 'writeback_latency', 'avg', 'ns'),
      (14, 'writeback_latency', 'p50', 'ns'),
      (15, 'writeback_latency', 'p90', 'ns'),
      (16, 'writeback_latency', 'p99', 'ns'),
      (17, 'writeback_latency', 'p999', 'ns'),
      (18, 'writeback_latency', 'max', 'ns'),
      (19, 'writeback_latency', 'sum', 'ns'),
      (20, 'journal_wait', 'avg', 'ns'),
      (21, 'journal_wait', 'p50', 'ns'),
      (22, 'journal_wait', 'p99', 'ns'),
      (23, 'journal_wait', 'sum', 'ns'),
      (24, 'flush_wait', 'avg', 'ns'),
      (25, 'flush_wait', 'p50', 'ns'),
      (26, 'flush_wait', 'p99', 'ns'),
      (27, 'flush_wait', 'sum', 'ns'),
      (28, 'writeback_amount', 'avg', 'bytes'),
      (29, 'writeback_amount', 'p50', 'bytes'),
      (30, 'writeback_amount', 'p99', 'bytes'),
      (31, 'writeback_amount', 'max', 'bytes'),
      -- Not a statistic of the distribution: it covers all requests.
      (32, 'writeback_amount_sum', NULL, 'bytes'),
      (33, 'sync_time_sum', NULL, 'ns'),
      (34, 'sync_wall_time', NULL, 'ns'),
      (35, 'parallelism', NULL, 'ratio'),
      (36, 'attribution_share', NULL, 'share'),
      (37, 'incomplete', NULL, 'count'),
      (38, 'unmatched_calls', NULL, 'count'),
      (39, 'failed_syncs', NULL, 'count'),
      (40, 'failed_calls', NULL, 'count'),
      (41, 'failed_bios', NULL, 'count'),
      (42, 'background_bios', NULL, 'count'),
      (43, 'background_bytes', NULL, 'bytes'),
      (44, 'losses', NULL, 'count'),
      (45, 'marks', NULL, 'count'),
      (46, 'syncs_per_mark', NULL, 'count'),
      (47, 'syscall_latency_per_mark', NULL, 'ns'),
      (48, 'writeback_latency_per_mark', NULL, 'ns'),
      (49, 'writeback_amount_per_mark', NULL, 'bytes'),
      (50, 'sync_wall_time_per_mark', NULL, 'ns')
  ),
  confidence(name) AS (VALUES ('exact'), ('inferred'), ('unknown')),
  missing(name) AS (VALUES ('start'), ('end'), ('call'), ('bio')),
  total AS MATERIALIZED (
    SELECT
      COUNT(*) AS syncs,
      SUM(requests) AS requests,
      COUNT(
        COALESCE(
          path,
          dev || ':' || CAST(ino AS TEXT),
          CASE WHEN what = 'several files' THEN what END
        )
      ) AS file_count,
      SUM(
        CASE
          WHEN incomplete IN ('start', 'end') THEN 0
          WHEN bios IS NULL THEN 0
          ELSE 1
        END
      ) AS whole,
      SUM(
        CASE
          WHEN incomplete IN ('start', 'end') THEN 0
          WHEN bios = 0
          AND COALESCE(ret, 0) >= 0 THEN 1
          ELSE 0
        END
      ) AS empty,
      COUNT(ret) AS ret_count,
      SUM(CASE WHEN ret < 0 THEN 1 ELSE 0 END) AS failed,
      COUNT(bytes) AS amount_count,
      SUM(CASE WHEN incomplete = 'start' THEN 1 ELSE 0 END) AS no_start,
      SUM(CASE WHEN incomplete = 'end' THEN 1 ELSE 0 END) AS no_end,
      SUM(CASE WHEN incomplete = 'call' THEN 1 ELSE 0 END) AS no_call,
      SUM(CASE WHEN incomplete = 'bio' THEN 1 ELSE 0 END) AS no_bio,
      SUM(CASE WHEN attributable = 'exact' THEN 1 ELSE 0 END) AS exact,
      SUM(CASE WHEN attributable = 'inferred' THEN 1 ELSE 0 END) AS inferred,
      SUM(CASE WHEN attributable = 'unknown' THEN 1 ELSE 0 END) AS unknown,
      COUNT(attributable) AS attributed
    FROM (
      SELECT
        path, dev, ino, what, requests, incomplete, bios, ret, bytes,
        -- The confidence of a sync without anything to attribute says
        -- nothing.
        CASE
          WHEN bios IS NOT NULL
          OR journal_ns IS NOT NULL
          OR flush_ns IS NOT NULL
          OR (op IS NOT NULL AND start_ns IS NOT NULL) THEN confidence
        END AS attributable
      FROM syncline_sync_call
    ) AS sync
  ),
  -- Its files and its bytes are those of all requests.
  request AS MATERIALIZED (
    SELECT
      COUNT(DISTINCT COALESCE(path, dev || ':' || CAST(ino AS TEXT))) AS files,
      SUM(bytes) AS amount_sum
    FROM syncline_sync
  ),
  -- How the name of a thread of the kernel begins, and what may follow.
  kernel_thread(name, more) AS (VALUES (:kernel_names)),
  of_kernel AS (
    SELECT SUM(syncs) AS syncs
    FROM (
      SELECT comm, COUNT(*) AS syncs
      FROM syncline_sync_call
      WHERE op IS NULL
      GROUP BY comm
    ) AS by_comm
    WHERE
      EXISTS (
        SELECT 1
        FROM kernel_thread
        WHERE
          SUBSTR(by_comm.comm, 1, LENGTH(name)) = name
          AND (more = 'any'
          OR (more = 'nothing' AND by_comm.comm = name)
          OR (more = 'digit'
          AND SUBSTR(by_comm.comm, LENGTH(name) + 1, 1) BETWEEN '0' AND '9'))
      )
  ),
  operation AS (
    SELECT COALESCE(op, 'none') AS op, COUNT(*) AS syncs
    FROM syncline_sync_call
    GROUP BY COALESCE(op, 'none')
  ),
  -- The values that the distributions cover. It is read twice, and must not be
  -- kept: it has several rows for each request.
  measured(measure, figure) AS NOT MATERIALIZED (
    SELECT 'syscall_latency', syscall_ns
    FROM syncline_sync_call
    WHERE syscall_ns IS NOT NULL
    UNION ALL
    SELECT 'writeback_latency', writeback_ns
    FROM syncline_sync_call
    WHERE writeback_ns IS NOT NULL
    UNION ALL
    SELECT 'journal_wait', journal_ns
    FROM syncline_sync_call
    WHERE journal_ns IS NOT NULL
    UNION ALL
    SELECT 'flush_wait', flush_ns
    FROM syncline_sync_call
    WHERE flush_ns IS NOT NULL
    UNION ALL
    SELECT 'writeback_amount', bytes
    FROM syncline_sync_call
    WHERE
      bytes IS NOT NULL
      AND (incomplete IS NULL OR incomplete NOT IN ('start', 'end'))
  ),
  -- An engine keeps all values of a percentile in memory. So the values are
  -- counted in slices first, and then one by one in the few slices that hold a
  -- percentile.
  tally AS MATERIALIZED (
    SELECT
      measure,
      figure - figure % 65536 AS slice_start,
      COUNT(*) AS figures,
      SUM(figure) AS sum,
      MAX(figure) AS max
    FROM measured
    GROUP BY 1, 2
  ),
  slice AS MATERIALIZED (
    SELECT
      measure, slice_start, figures,
      (SUM(figures) OVER by_start) - figures AS before
    FROM tally
    WINDOW by_start AS (PARTITION BY measure ORDER BY slice_start)
  ),
  total_of AS MATERIALIZED (
    SELECT measure, SUM(figures) AS known, SUM(sum) AS sum, MAX(max) AS max
    FROM tally
    GROUP BY measure
  ),
  -- A percentile is between the value at `position` (from 0) and the next
  -- one. Whole numbers make it exact.
  target AS MATERIALIZED (
    SELECT
      measure, statistic,
      CAST((thousandths - thousandths % 1000) / 1000 AS BIGINT) AS position,
      thousandths % 1000 AS rest
    FROM (
      SELECT measure, statistic, permille * (known - 1) AS thousandths
      FROM total_of
      CROSS JOIN (
        SELECT 'p50' AS statistic, 500 AS permille
        UNION ALL
        SELECT 'p90', 900
        UNION ALL
        SELECT 'p99', 990
        UNION ALL
        SELECT 'p999', 999
      ) AS share
    ) AS exact
  ),
  wanted AS MATERIALIZED (
    SELECT slice.measure, slice.slice_start, slice.before
    FROM slice
    JOIN target
      ON target.measure = slice.measure
      AND slice.before <= target.position + 1
      AND slice.before + slice.figures > target.position
    GROUP BY slice.measure, slice.slice_start, slice.before
  ),
  counted AS (
    SELECT wanted.measure, wanted.before, measured.figure, COUNT(*) AS figures
    -- CROSS JOIN makes SQLite look up the few slices of each value.
    FROM measured
    CROSS JOIN wanted
    WHERE
      wanted.measure = measured.measure
      AND wanted.slice_start = measured.figure - measured.figure % 65536
    GROUP BY wanted.measure, wanted.before, measured.figure
  ),
  ordered AS MATERIALIZED (
    SELECT
      measure, figure, figures,
      before + SUM(figures) OVER (PARTITION BY measure, before ORDER BY figure)
      - figures AS before
    FROM counted
  ),
  quantile AS (
    SELECT
      target.measure, target.statistic,
      MIN(ordered.figure)
      + CAST(MAX(ordered.figure) - MIN(ordered.figure) AS DOUBLE)
      * MIN(target.rest)
      / 1000 AS figure
    FROM target
    JOIN ordered
      ON ordered.measure = target.measure
      AND ordered.before <= target.position + 1
      AND ordered.before + ordered.figures > target.position
    GROUP BY target.measure, target.statistic
  ),
  -- Threads of one process may have different names.
  owner AS (
    SELECT
      run, pid,
      COALESCE(
        'process:' || MIN(process),
        'comm:' || MIN(comm),
        'pid:' || CAST(pid AS TEXT)
      ) AS scope
    FROM syncline_sync_call
    WHERE pid IS NOT NULL
    GROUP BY run, pid
  ),
  -- Threads are grouped by name only if their process is unknown.
  timed AS NOT MATERIALIZED (
    SELECT
      run,
      COALESCE(pid, -1) AS pid,
      CASE WHEN pid IS NULL THEN COALESCE(comm, '') ELSE '' END AS comm,
      ts_ns,
      ts_ns + dur_ns AS end_ns
    FROM syncline_sync_call
  ),
  -- Numbers for processes and runs, because engines sort them faster than text.
  numbered AS MATERIALIZED (
    SELECT
      run, pid, comm,
      ROW_NUMBER() OVER (ORDER BY run, pid, comm) AS process_number,
      DENSE_RANK() OVER (ORDER BY run) AS run_number
    FROM (SELECT DISTINCT run, pid, comm FROM timed) AS known
  ),
  -- The latest end of the earlier requests, by process and by run. Only the
  -- time after it adds to the wall time.
  reach AS (
    SELECT
      numbered.process_number, timed.ts_ns, timed.end_ns,
      MAX(timed.end_ns) OVER (
        PARTITION BY numbered.process_number
        ORDER BY timed.ts_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS process_end_ns,
      MAX(timed.end_ns) OVER (
        PARTITION BY numbered.run_number
        ORDER BY timed.ts_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS run_end_ns
    FROM timed
    JOIN numbered
      ON numbered.run = timed.run
      AND numbered.pid = timed.pid
      AND numbered.comm = timed.comm
  ),
  spent AS (
    SELECT
      process_number,
      COUNT(*) AS syncs,
      COUNT(end_ns) AS known,
      SUM(end_ns - ts_ns) AS time_sum,
      SUM(
        CASE
          WHEN process_end_ns IS NULL
          OR process_end_ns <= ts_ns THEN end_ns - ts_ns
          WHEN process_end_ns < end_ns THEN end_ns - process_end_ns
          ELSE 0
        END
      ) AS wall,
      SUM(
        CASE
          WHEN run_end_ns IS NULL
          OR run_end_ns <= ts_ns THEN end_ns - ts_ns
          WHEN run_end_ns < end_ns THEN end_ns - run_end_ns
          ELSE 0
        END
      ) AS run_wall
    FROM reach
    GROUP BY process_number
  ),
  named AS (
    SELECT
      COALESCE(owner.scope, 'comm:' || numbered.comm) AS scope,
      SUM(time_sum) AS time_sum,
      SUM(wall) AS wall,
      SUM(known) AS known,
      SUM(syncs) AS syncs
    FROM spent
    JOIN numbered ON numbered.process_number = spent.process_number
    LEFT JOIN owner ON owner.run = numbered.run AND owner.pid = numbered.pid
    GROUP BY 1
  ),
  ranked AS (
    SELECT
      named.*,
      ROW_NUMBER() OVER (ORDER BY COALESCE(time_sum, 0) DESC, scope) AS place
    FROM named
  ),
  scoped AS MATERIALIZED (
    SELECT
      CASE WHEN place <= 50 THEN scope ELSE 'others' END AS scope,
      SUM(time_sum) AS time_sum,
      SUM(wall) AS wall,
      SUM(known) AS known,
      SUM(syncs) AS syncs
    FROM ranked
    GROUP BY 1
    UNION ALL
    SELECT
      'all',
      SUM(time_sum),
      SUM(run_wall),
      COALESCE(SUM(known), 0),
      COALESCE(SUM(syncs), 0)
    FROM spent
  ),
  -- Syncs that are not the same as their request. The others are looked up by
  -- time in the table of requests: those of a view cannot be.
  apart AS MATERIALIZED (
    SELECT DISTINCT run, call_sync_id
    FROM syncline_sync
    WHERE call_sync_id <> sync_id OR op IN ('sync', 'syncfs')
  ),
  whole AS MATERIALIZED (
    SELECT
      sync.run, sync.ts_ns, sync.dur_ns, sync.syscall_ns, sync.writeback_ns,
      sync.bytes
    FROM syncline_sync_call AS sync
    JOIN apart
      ON apart.run = sync.run
      AND apart.call_sync_id = sync.call_sync_id
  ),
  in_mark AS (
    SELECT
      mark.run, mark.mark_id, sync.ts_ns, sync.dur_ns, sync.syscall_ns,
      sync.writeback_ns, sync.bytes
    -- CROSS JOIN makes SQLite look up the requests of each mark by time,
    -- instead of the marks of each request.
    FROM syncline_mark AS mark
    CROSS JOIN syncline_sync AS sync
    WHERE
      sync.run = mark.run
      AND sync.ts_ns >= mark.ts_ns
      AND sync.ts_ns < mark.ts_ns + mark.dur_ns
      AND (sync.run, sync.call_sync_id) NOT IN (
        SELECT run, call_sync_id FROM apart
      )
    UNION ALL
    SELECT
      mark.run, mark.mark_id, sync.ts_ns, sync.dur_ns, sync.syscall_ns,
      sync.writeback_ns, sync.bytes
    FROM syncline_mark AS mark
    CROSS JOIN whole AS sync
    WHERE
      sync.run = mark.run
      AND sync.ts_ns >= mark.ts_ns
      AND sync.ts_ns < mark.ts_ns + mark.dur_ns
  ),
  marked AS (
    SELECT
      run, mark_id, ts_ns,
      ts_ns + dur_ns AS end_ns,
      syscall_ns, writeback_ns, bytes
    FROM in_mark
  ),
  mark_reach AS (
    SELECT
      ts_ns, end_ns, syscall_ns, writeback_ns, bytes,
      MAX(end_ns) OVER (
        PARTITION BY run, mark_id
        ORDER BY ts_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS mark_end_ns
    FROM marked
  ),
  in_marks AS (
    SELECT
      COUNT(*) AS syncs,
      COUNT(syscall_ns) AS syscall_count,
      COALESCE(SUM(syscall_ns), 0) AS syscall,
      COUNT(writeback_ns) AS writeback_count,
      COALESCE(SUM(writeback_ns), 0) AS writeback,
      COUNT(bytes) AS amount_count,
      COALESCE(SUM(bytes), 0) AS amount,
      COUNT(end_ns) AS wall_count,
      COALESCE(
        SUM(
          CASE
            WHEN end_ns IS NULL THEN 0
            WHEN mark_end_ns IS NULL
            OR mark_end_ns <= ts_ns THEN end_ns - ts_ns
            WHEN mark_end_ns < end_ns THEN end_ns - mark_end_ns
            ELSE 0
          END
        ),
        0
      ) AS wall
    FROM mark_reach
  ),
  -- Without marks it is empty.
  per_mark AS MATERIALIZED (
    SELECT in_marks.*, mark_count.marks
    FROM in_marks
    CROSS JOIN (SELECT COUNT(*) AS marks FROM syncline_mark) AS mark_count
    WHERE mark_count.marks > 0
  ),
  -- A high-level log has only requests: counts in its other tables are null.
  other_tables AS (
    SELECT CASE WHEN COUNT(*) = 0 THEN 1 END AS known
    FROM syncline_meta
    WHERE key = 'tables'
  ),
  unmatched AS (
    SELECT
      COUNT(*) AS calls,
      COUNT(ret) AS ret_count,
      SUM(CASE WHEN ret < 0 THEN 1 ELSE 0 END) AS failed
    FROM syncline_call
    WHERE unmatched
  ),
  bio AS (
    SELECT
      COUNT(*) AS bios,
      COUNT(error) AS error_count,
      SUM(CASE WHEN error < 0 THEN 1 ELSE 0 END) AS failed,
      SUM(CASE WHEN origin = 'background' THEN 1 ELSE 0 END) AS background,
      SUM(
        CASE WHEN origin = 'background' AND bytes IS NOT NULL THEN 1 ELSE 0 END
      ) AS background_sizes,
      SUM(CASE WHEN origin = 'background' THEN bytes END) AS background_bytes,
      -- Without submits it is not known which bios no request asked for.
      CASE WHEN COUNT(origin) = COUNT(*) THEN 1 END AS known
    FROM syncline_bio
    WHERE direction = 'write'
  ),
  -- If the bios of no request are known, the recorder did not record bios.
  recorded_bios AS (
    SELECT
      CASE
        WHEN COUNT(*) = 0
        OR COUNT(bios) > 0
        OR (SELECT COUNT(*) FROM syncline_bio) > 0 THEN 1
      END AS known
    FROM syncline_sync
  ),
  -- Whether a run shows syncs, and whether all do. A count of syncs says
  -- something if one does, and who asked for a bio is known only where all do.
  recorded_syncs AS (
    SELECT
      CASE
        WHEN total.syncs > 0
        OR unseen.runs = 0
        OR unseen.runs < unseen.of_runs THEN 1
      END AS known,
      CASE WHEN unseen.runs = 0 THEN 1 END AS known_in_all
    FROM total
    CROSS JOIN (
      SELECT
        COUNT(DISTINCT
          CASE WHEN key = 'syncs_recorded' AND value = 'no' THEN run END
        ) AS runs,
        COUNT(DISTINCT run) AS of_runs
      FROM syncline_meta
    ) AS unseen
  ),
  loss AS (
    SELECT COALESCE(SUM(count), 0) AS events
    FROM syncline_loss
    WHERE severity = 'loss'
  ),
  figure(name, scope, value, known, syncs) AS (
    SELECT 'runs', 'all', COUNT(DISTINCT run), NULL, NULL FROM syncline_meta
    UNION ALL
    SELECT 'syncs', 'all', syncs, NULL, NULL FROM total
    UNION ALL
    SELECT 'syncs', 'op:' || op, syncs, NULL, NULL FROM operation
    UNION ALL
    SELECT 'syncs', 'kernel', syncs, NULL, NULL FROM of_kernel WHERE syncs > 0
    UNION ALL
    SELECT 'syncs', 'programs', total.syncs - of_kernel.syncs, NULL, NULL
    FROM of_kernel
    CROSS JOIN total
    WHERE of_kernel.syncs > 0
    UNION ALL
    SELECT 'requests', 'all', requests, NULL, NULL
    FROM total
    WHERE requests > syncs
    UNION ALL
    SELECT 'unique_files', 'all', files, file_count, syncs
    FROM total
    CROSS JOIN request
    UNION ALL
    SELECT
      'empty_share', 'all',
      CAST(empty AS DOUBLE) / NULLIF(whole, 0),
      COALESCE(whole, 0),
      syncs
    FROM total
    UNION ALL
    SELECT
      metric.measure || '_' || metric.statistic,
      'all',
      CASE metric.statistic
        WHEN 'avg' THEN CAST(total_of.sum AS DOUBLE) / total_of.known
        WHEN 'max' THEN total_of.max
        WHEN 'sum' THEN total_of.sum
        ELSE quantile.figure
      END,
      COALESCE(total_of.known, 0),
      total.syncs
    FROM metric
    CROSS JOIN total
    LEFT JOIN total_of ON total_of.measure = metric.measure
    LEFT JOIN quantile
      ON quantile.measure = metric.measure
      AND quantile.statistic = metric.statistic
    WHERE
      metric.statistic IS NOT NULL
      -- Waits are left out where nothing records them.
      AND (total_of.known > 0
      OR metric.measure NOT IN ('journal_wait', 'flush_wait'))
    UNION ALL
    SELECT
      'writeback_amount_sum', 'all',
      COALESCE(amount_sum, 0),
      amount_count, syncs
    FROM total
    CROSS JOIN request
    UNION ALL
    SELECT 'sync_time_sum', scope, COALESCE(time_sum, 0), known, syncs
    FROM scoped
    UNION ALL
    SELECT 'sync_wall_time', scope, COALESCE(wall, 0), known, syncs FROM scoped
    UNION ALL
    SELECT
      'parallelism', scope,
      CAST(time_sum AS DOUBLE) / NULLIF(wall, 0),
      known, syncs
    FROM scoped
    UNION ALL
    SELECT
      'attribution_share', confidence.name,
      CAST(CASE confidence.name
        WHEN 'exact' THEN exact
        WHEN 'inferred' THEN inferred
        WHEN 'unknown' THEN unknown
      END AS DOUBLE)
      / NULLIF(attributed, 0),
      attributed, syncs
    FROM total
    CROSS JOIN confidence
    UNION ALL
    SELECT
      'incomplete', missing.name,
      COALESCE(
        CASE missing.name
          WHEN 'start' THEN no_start
          WHEN 'end' THEN no_end
          WHEN 'call' THEN no_call
          WHEN 'bio' THEN no_bio
        END,
        0
      ),
      NULL, NULL
    FROM total
    CROSS JOIN missing
    UNION ALL
    SELECT 'unmatched_calls', 'all', calls * known, NULL, NULL
    FROM unmatched
    CROSS JOIN other_tables
    UNION ALL
    SELECT 'failed_syncs', 'all', COALESCE(failed, 0), ret_count, syncs
    FROM total
    UNION ALL
    SELECT
      'failed_calls', 'all',
      COALESCE(failed, 0) * known,
      ret_count * known,
      calls * known
    FROM unmatched
    CROSS JOIN other_tables
    UNION ALL
    SELECT
      'failed_bios', 'all',
      COALESCE(failed, 0) * other_tables.known * recorded_bios.known,
      error_count * other_tables.known * recorded_bios.known,
      bios * other_tables.known * recorded_bios.known
    FROM bio
    CROSS JOIN recorded_bios
    CROSS JOIN other_tables
    UNION ALL
    SELECT
      'background_bios', 'all',
      COALESCE(background, 0) * bio.known * other_tables.known
      * recorded_bios.known
      * recorded_syncs.known_in_all,
      NULL, NULL
    FROM bio
    CROSS JOIN recorded_bios
    CROSS JOIN other_tables
    CROSS JOIN recorded_syncs
    UNION ALL
    SELECT
      'background_bytes', 'all',
      COALESCE(background_bytes, 0) * bio.known * other_tables.known
      * recorded_bios.known
      * recorded_syncs.known_in_all,
      COALESCE(background_sizes, 0) * bio.known * other_tables.known
      * recorded_bios.known
      * recorded_syncs.known_in_all,
      COALESCE(background, 0) * bio.known * other_tables.known
      * recorded_bios.known
      * recorded_syncs.known_in_all
    FROM bio
    CROSS JOIN recorded_bios
    CROSS JOIN other_tables
    CROSS JOIN recorded_syncs
    UNION ALL
    SELECT 'losses', 'all', events * known, NULL, NULL
    FROM loss
    CROSS JOIN other_tables
    UNION ALL
    SELECT 'marks', 'all', marks, NULL, NULL FROM per_mark
    UNION ALL
    SELECT 'syncs_per_mark', 'all', CAST(syncs AS DOUBLE) / marks, NULL, NULL
    FROM per_mark
    UNION ALL
    SELECT
      'syscall_latency_per_mark', 'all',
      CAST(syscall AS DOUBLE) / marks,
      syscall_count, syncs
    FROM per_mark
    UNION ALL
    SELECT
      'writeback_latency_per_mark', 'all',
      CAST(writeback AS DOUBLE) / marks,
      writeback_count, syncs
    FROM per_mark
    UNION ALL
    SELECT
      'writeback_amount_per_mark', 'all',
      CAST(amount AS DOUBLE) / marks,
      amount_count, syncs
    FROM per_mark
    UNION ALL
    SELECT
      'sync_wall_time_per_mark', 'all',
      CAST(wall AS DOUBLE) / marks,
      wall_count, syncs
    FROM per_mark
  )
SELECT
  figure.name AS metric,
  figure.scope,
  -- Null, not 0, if no request has a known value.
  CASE
    WHEN figure.known > 0
    OR figure.syncs = 0
    OR figure.syncs IS NULL THEN CAST(figure.value * figure.covered AS DOUBLE)
  END AS value,
  metric.unit,
  CAST(figure.known * figure.covered AS BIGINT) AS known,
  CAST(figure.syncs * figure.covered AS BIGINT) AS syncs
FROM (
  SELECT
    figure.*,
    CASE
      WHEN figure.name IN ('runs', 'failed_bios', 'losses', 'marks') THEN 1
      ELSE recorded_syncs.known
    END AS covered
  FROM figure
  CROSS JOIN recorded_syncs
) AS figure
JOIN metric
  ON figure.name = metric.measure || COALESCE('_' || metric.statistic, '')
ORDER BY
  metric.place,
  CASE figure.scope
    WHEN 'start' THEN 1
    WHEN 'end' THEN 2
    WHEN 'call' THEN 3
    WHEN 'bio' THEN 4
  END,
  figure.scope;
