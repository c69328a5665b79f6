-- Summary: what the run did and what it cost, one metric a row.
--
-- The metrics are those of tables 6.1 and 6.2 of the thesis, with their
-- distribution and the real cost of parallel syncs. (metric, scope) identifies
-- a row in every run, so that you can compare two runs.
--
-- A sync is a call with all its requests, because sync() makes one for each
-- file system. `requests` counts them, and is present if a sync made several.
-- If a thread of the kernel made syncs, as of a loop device or of nfsd,
-- `syncs` has them apart: the scopes programs and kernel.
--
-- Syncs that each metric covers (`known` of `syncs`):
-- * Latencies cover the syncs whose latency is known. An incomplete sync counts
--   in `syncs` but has no latency, while an empty sync has a writeback latency
--   of 0 and is included.
-- * Amounts and empty_share cover syncs whose start and end were recorded,
--   because an incomplete sync may have written more than the log holds. Only
--   writeback_amount_sum covers all syncs. None of them covers a call-only
--   request, or one of whole file systems for which flusher threads wrote.
-- * journal_wait is time spent on commits of the journal, and flush_wait time
--   in cache flushes that the syncs issued. Both are present only if the
--   recorder records them, and cover the syncs of file systems that report
--   them.
-- * sync_time_sum is the sum over the syncs, each from its call (from its
--   start if it has no call) to its end. sync_wall_time is the time during
--   which at least one sync was in flight: the real cost of these syncs.
--   parallelism is sync_time_sum / sync_wall_time. In the scope of a program,
--   sync_wall_time is found for each process and added up, because the threads
--   of a process wait for each other. In the scope all, it is that of the run.
-- * Processes with the same name are added up. If the name of a process is
--   unknown, its scope is the name of one of its threads (comm:NAME, the first
--   in alphabetical order). If no process is known, threads with the same name
--   count as one (also comm:NAME). The 50 names with the largest sync_time_sum
--   have rows of their own, and the scope `others` covers the other names.
-- * attribution_share is the confidence in which bio and which call belong to
--   which request, as a share of the syncs that have something to attribute:
--   those whose bios or waits are known, or that have both a call and a start.
-- * ..._per_mark is the sum over the syncs that began during a mark, averaged
--   over the marks. It is present only if there are marks.
-- * failed_syncs, failed_calls, failed_bios count syncs, calls without a
--   request, and bios of every direction, if they ended with an error: a flush
--   that fails leaves data in danger as a write does. A sync that failed is not
--   empty, because its data may be dirty still. The report `failures` lists
--   them.
-- * background_bios and background_bytes cover the bios that write. They are
--   null if it is not known of one of these whether it belongs to a sync.
-- * A high-level log holds only requests. A metric that it does not hold is
--   null, not 0, and so is a metric if no sync has a known value.
-- * If times are known to a second only, as in a table of slow calls, nobody
--   knows which syncs overlapped, so sync_wall_time and parallelism are null.
-- * A recording without an event of a sync, such as a log of blktrace, does not
--   show whether there were syncs, or which bios are of the background, so
--   figures of these are null. If the input has other runs as well, figures of
--   syncs cover those.
--
-- Narrow: metric scope value unit syncs known
--
-- Columns:
--   metric  text   Name of the metric.
--   scope   text   What the row covers: all, op:NAME, programs, kernel,
--                  process:NAME, comm:NAME, pid:N, others, a confidence, or
--                  what is missing (for incomplete).
--   value   unit   Value of the metric. Null if no sync has a known value.
--   unit    text   Unit of the value: count, ns, bytes, share (of 1) or ratio.
--   known   count  Number of syncs with a known value, which the metric
--                  covers. For failed_calls it counts calls without a request,
--                  for failed_bios bios, and for background_bytes background
--                  bios. Null for counts, which leave no sync out.
--   syncs   count  Number of syncs in the scope, or of such calls or bios.
--                  Null for counts.
WITH
  metric AS (SELECT * FROM summary_metrics!()),
  confidence(name) AS (VALUES ('exact'), ('inferred'), ('unknown')),
  missing(name) AS (VALUES ('start'), ('end'), ('call'), ('bio')),
  total AS (
    SELECT
      COUNT(*) AS syncs,
      SUM(requests) AS requests,
      COUNT(
        COALESCE(
          path,
          dev || ':' || CAST(ino AS TEXT),
          CASE WHEN what = 'several files' THEN what END
        )
      ) AS with_file,
      -- Those of which it is known whether they are empty.
      COUNT(CASE WHEN is_whole!(sync) THEN bios END) AS whole,
      SUM(is_empty!(sync)) AS empty,
      COUNT(ret) AS with_ret,
      COUNT(CASE WHEN ret < 0 THEN 1 END) AS failed,
      COUNT(bytes) AS with_bytes
    FROM syncline_sync_call AS sync
  ),
  -- Files and bytes are taken from requests, because a sync of several files
  -- has no path, and no bytes if those of one request are not known.
  request AS (
    SELECT
      COUNT(*) AS requests,
      COUNT(DISTINCT COALESCE(path, dev || ':' || CAST(ino AS TEXT))) AS files,
      SUM(bytes) AS bytes
    FROM syncline_sync
  ),
  -- How many syncs threads of the kernel made, without a call. Each name is
  -- looked at once.
  of_kernel AS (
    SELECT SUM(syncs) AS syncs
    FROM (
      SELECT comm, COUNT(*) AS syncs
      FROM syncline_sync_call
      WHERE op IS NULL
      GROUP BY comm
    ) AS by_comm
    WHERE is_kernel_thread!(comm)
  ),
  operation AS (
    SELECT COALESCE(op, 'none') AS op, COUNT(*) AS syncs
    FROM syncline_sync_call
    GROUP BY 1
  ),
  -- How many syncs lack what. Null is for those that lack nothing.
  lacking AS (
    SELECT incomplete, COUNT(*) AS syncs
    FROM syncline_sync_call
    GROUP BY incomplete
  ),
  -- The confidence of a sync without anything to attribute says nothing.
  attributed AS (
    SELECT confidence, COUNT(*) AS syncs
    FROM syncline_sync_call
    WHERE
      confidence IS NOT NULL
      AND (COALESCE(bios, journal_ns, flush_ns) IS NOT NULL
      OR (op IS NOT NULL AND start_ns IS NOT NULL))
    GROUP BY confidence
  ),
  measured(measure, figure) AS (
    SELECT 'syscall_latency', syscall_ns FROM syncline_sync_call
    UNION ALL
    SELECT 'writeback_latency', writeback_ns FROM syncline_sync_call
    UNION ALL
    SELECT 'journal_wait', journal_ns FROM syncline_sync_call
    UNION ALL
    SELECT 'flush_wait', flush_ns FROM syncline_sync_call
    UNION ALL
    SELECT 'writeback_amount', bytes
    FROM syncline_sync_call AS sync
    WHERE is_whole!(sync)
  ),
  distribution AS (SELECT * FROM distribution!(measured, figure, (measure))),
  -- The time of all syncs, and of those of each program, or of `others`.
  scoped AS (SELECT * FROM time_of_programs!()),
  marks AS (SELECT COUNT(*) AS marks FROM syncline_mark),
  unmatched AS (
    SELECT
      COUNT(*) AS calls,
      COUNT(ret) AS with_ret,
      COUNT(CASE WHEN ret < 0 THEN 1 END) AS failed
    FROM syncline_call
    WHERE unmatched
  ),
  bio AS (
    SELECT
      COUNT(*) AS bios,
      COUNT(error) AS with_error,
      COUNT(CASE WHEN error < 0 THEN 1 END) AS failed
    FROM syncline_bio
  ),
  background AS (
    SELECT
      COUNT(CASE WHEN origin = 'background' THEN 1 END) AS bios,
      COUNT(CASE WHEN origin = 'background' THEN bytes END) AS with_bytes,
      COALESCE(SUM(CASE WHEN origin = 'background' THEN bytes END), 0) AS bytes
    FROM syncline_bio
    WHERE direction = 'write'
    -- No row if the origin of a bio is not known: the sums would be too small.
    HAVING COUNT(origin) = COUNT(*)
  ),
  loss AS (
    SELECT COALESCE(SUM(count), 0) AS events
    FROM syncline_loss
    WHERE severity = 'loss'
  ),
  shown AS (SELECT * FROM shown_figures!()),
  -- A row of the result each, also those that the input cannot show. A table
  -- that is joined to `shown` gives null, not 0, if the input lacks it.
  figure(name, scope, value, known, syncs) AS (
    SELECT 'runs', 'all', runs, NULL, NULL FROM shown
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
    SELECT 'unique_files', 'all', files, with_file, syncs
    FROM total
    CROSS JOIN request
    UNION ALL
    SELECT 'empty_share', 'all', share!(empty, whole), whole, syncs FROM total
    UNION ALL
    SELECT
      metric.measure || '_' || metric.statistic,
      'all',
      CASE metric.statistic
        WHEN 'avg' THEN avg
        WHEN 'p50' THEN p50
        WHEN 'p90' THEN p90
        WHEN 'p99' THEN p99
        WHEN 'p999' THEN p999
        WHEN 'max' THEN max
        WHEN 'sum' THEN sum
      END,
      COALESCE(known, 0),
      syncs
    FROM metric
    CROSS JOIN total
    LEFT JOIN distribution ON distribution.measure = metric.measure
    WHERE
      metric.statistic IS NOT NULL
      -- Waits are left out where nothing records them.
      AND (known > 0 OR metric.measure NOT IN ('journal_wait', 'flush_wait'))
    UNION ALL
    SELECT 'writeback_amount_sum', 'all', COALESCE(bytes, 0), with_bytes, syncs
    FROM total
    CROSS JOIN request
    UNION ALL
    SELECT 'sync_time_sum', scope, COALESCE(time_ns, 0), known, syncs
    FROM scoped
    UNION ALL
    SELECT 'sync_wall_time', scope, COALESCE(wall_ns, 0), known, syncs
    FROM scoped
    UNION ALL
    SELECT 'parallelism', scope, share!(time_ns, wall_ns), known, syncs
    FROM scoped
    UNION ALL
    SELECT
      'attribution_share', confidence.name,
      share!(COALESCE(attributed.syncs, 0), attributable.syncs),
      COALESCE(attributable.syncs, 0),
      total.syncs
    FROM confidence
    CROSS JOIN (SELECT SUM(syncs) AS syncs FROM attributed) AS attributable
    CROSS JOIN total
    LEFT JOIN attributed ON attributed.confidence = confidence.name
    UNION ALL
    SELECT 'incomplete', missing.name, COALESCE(syncs, 0), NULL, NULL
    FROM missing
    LEFT JOIN lacking ON lacking.incomplete = missing.name
    UNION ALL
    SELECT 'unmatched_calls', 'all', calls, NULL, NULL
    FROM shown
    LEFT JOIN unmatched ON shown.has_tables
    UNION ALL
    SELECT 'failed_syncs', 'all', failed, with_ret, syncs FROM total
    UNION ALL
    SELECT 'failed_calls', 'all', failed, with_ret, calls
    FROM shown
    LEFT JOIN unmatched ON shown.has_tables
    UNION ALL
    SELECT 'failed_bios', 'all', failed, with_error, bios
    FROM shown
    LEFT JOIN bio ON shown.has_bios
    UNION ALL
    SELECT 'background_bios', 'all', bios, NULL, NULL
    FROM shown
    LEFT JOIN background ON shown.has_bios AND shown.all_have_syncs
    UNION ALL
    SELECT 'background_bytes', 'all', bytes, with_bytes, bios
    FROM shown
    LEFT JOIN background ON shown.has_bios AND shown.all_have_syncs
    UNION ALL
    SELECT 'losses', 'all', events, NULL, NULL
    FROM shown
    LEFT JOIN loss ON shown.has_tables
    UNION ALL
    SELECT 'marks', 'all', marks, NULL, NULL FROM marks WHERE marks > 0
    UNION ALL
    SELECT
      measure || '_per_mark',
      'all',
      CAST(COALESCE(in_marks.total, 0) AS DOUBLE) / marks,
      known, syncs
    FROM sums_of_marks!() AS in_marks
    CROSS JOIN marks
    WHERE marks > 0
  ),
  -- Each figure, and whether the input can show it.
  covered AS (
    SELECT figure.*, can_show!(shown, name) AS is_shown
    FROM figure
    CROSS JOIN shown
  )
SELECT
  covered.name AS metric,
  covered.scope,
  -- Null, not 0, if no sync has a known value.
  CASE
    WHEN is_shown
    AND (known > 0 OR syncs = 0 OR syncs IS NULL) THEN CAST(value AS DOUBLE)
  END AS value,
  metric.unit,
  CAST(CASE WHEN is_shown THEN known END AS BIGINT) AS known,
  CAST(CASE WHEN is_shown THEN syncs END AS BIGINT) AS syncs
FROM covered
JOIN metric
  ON covered.name = metric.measure || COALESCE('_' || metric.statistic, '')
ORDER BY
  metric.place,
  CASE covered.scope
    WHEN 'start' THEN 1
    WHEN 'end' THEN 2
    WHEN 'call' THEN 3
    WHEN 'bio' THEN 4
  END,
  covered.scope;
