-- Summary: what the run did and what it cost, one metric a row.
--
-- The metrics of tables 6.1 and 6.2 of the thesis, their distribution, and what
-- parallel syncs really cost. A row is known by (metric, scope), in every run,
-- so that two runs can be compared.
--
-- What each figure is taken over, known of syncs:
-- * Latencies: requests whose latency is known. An incomplete request is
--   counted, and left out. An empty sync has a writeback latency of 0, and
--   counts.
-- * Amounts and empty_share: requests seen from start to end; one that was cut
--   off may have written more than the log holds. writeback_amount_sum is over
--   all requests. Those of which only the call is known have neither.
-- * journal_wait: time for a commit of the journal, flush_wait: in cache
--   flushes that the syncs asked for. Only where the recorder tells them; over
--   the requests of file systems that do.
-- * sync_time_sum adds up the requests, each from its call (its start, with no
--   call) to its end. sync_wall_time is the time during which at least one
--   request was in flight: what these syncs really cost. parallelism is the one
--   divided by the other. Per process, as the threads of one process wait for
--   each other; processes of one name are added up. A process whose name is not
--   known goes by that of a thread of its (comm:NAME, the first by the
--   alphabet); where no process is known, the threads of one name are taken for
--   one (comm:NAME, too).
-- * attribution_share: how sure it is which bio and which call belong to which
--   request, as a share of all requests.
-- * ..._per_mark: sum over the requests that began during a mark, averaged over
--   the marks. Only with marks.
-- * A high-level log holds requests alone. What it does not hold is null, not
--   0. So is a figure of requests none of which has a known value.
--
-- Columns:
--   metric  text   Name of the metric.
--   scope   text   What of: all, op:NAME, process:NAME, comm:NAME, pid:N, or
--                  the kind.
--   value   unit   The figure. Null when there is nothing to take it from.
--   unit    text   Unit of the value: count, ns, bytes, share (of 1) or ratio.
--   known   count  Requests that the figure is taken over: those whose value is
--                  known. Null for what is counted, which leaves none out.
--   syncs   count  All requests that it speaks of.
WITH
  total AS MATERIALIZED (
    SELECT
      COUNT(*) AS syncs,
      COUNT(DISTINCT COALESCE(path, dev || ':' || CAST(ino AS TEXT))) AS files,
      COUNT(COALESCE(path, dev || ':' || CAST(ino AS TEXT))) AS file_count,
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
          WHEN bios = 0 THEN 1
          ELSE 0
        END
      ) AS empty,
      COUNT(syscall_ns) AS syscall_count,
      SUM(syscall_ns) AS syscall_sum,
      percentile(syscall_ns, 50) AS syscall_p50,
      percentile(syscall_ns, 90) AS syscall_p90,
      percentile(syscall_ns, 99) AS syscall_p99,
      percentile(syscall_ns, 99.9) AS syscall_p999,
      MAX(syscall_ns) AS syscall_max,
      COUNT(writeback_ns) AS writeback_count,
      SUM(writeback_ns) AS writeback_sum,
      percentile(writeback_ns, 50) AS writeback_p50,
      percentile(writeback_ns, 90) AS writeback_p90,
      percentile(writeback_ns, 99) AS writeback_p99,
      percentile(writeback_ns, 99.9) AS writeback_p999,
      MAX(writeback_ns) AS writeback_max,
      COUNT(journal_ns) AS journal_count,
      SUM(journal_ns) AS journal_sum,
      percentile(journal_ns, 50) AS journal_p50,
      percentile(journal_ns, 99) AS journal_p99,
      COUNT(flush_ns) AS flush_count,
      SUM(flush_ns) AS flush_sum,
      percentile(flush_ns, 50) AS flush_p50,
      percentile(flush_ns, 99) AS flush_p99,
      COUNT(bytes) AS amount_count,
      SUM(bytes) AS amount_sum,
      SUM(CASE WHEN incomplete = 'start' THEN 1 ELSE 0 END) AS no_start,
      SUM(CASE WHEN incomplete = 'end' THEN 1 ELSE 0 END) AS no_end,
      SUM(CASE WHEN incomplete = 'bio' THEN 1 ELSE 0 END) AS no_bio,
      SUM(CASE WHEN confidence = 'exact' THEN 1 ELSE 0 END) AS exact,
      SUM(CASE WHEN confidence = 'inferred' THEN 1 ELSE 0 END) AS inferred,
      SUM(CASE WHEN confidence = 'unknown' THEN 1 ELSE 0 END) AS unknown,
      COUNT(confidence) AS attributed
    FROM syncline_sync
  ),
  amount AS MATERIALIZED (
    SELECT
      COUNT(bytes) AS count,
      SUM(bytes) AS sum,
      percentile(bytes, 50) AS p50,
      percentile(bytes, 99) AS p99,
      MAX(bytes) AS max
    FROM syncline_sync
    WHERE
      incomplete IS NULL
      OR incomplete NOT IN ('start', 'end')
  ),
  operation AS (
    SELECT COALESCE(op, 'none') AS op, COUNT(*) AS syncs
    FROM syncline_sync
    GROUP BY
      COALESCE(op, 'none')
  ),
  -- Threads of one process may have names of their own.
  owner AS (
    SELECT
      run,
      pid,
      COALESCE(
        'process:' || MIN(process),
        'comm:' || MIN(comm),
        'pid:' || CAST(pid AS TEXT)
      ) AS scope
    FROM syncline_sync
    WHERE
      pid IS NOT NULL
    GROUP BY
      run,
      pid
  ),
  timed AS (
    SELECT
      sync.run,
      sync.pid,
      COALESCE(owner.scope, 'comm:' || COALESCE(sync.comm, '')) AS scope,
      sync.ts_ns,
      sync.ts_ns + sync.dur_ns AS end_ns
    FROM syncline_sync AS sync
    LEFT JOIN owner ON owner.run = sync.run AND owner.pid = sync.pid
  ),
  -- How far the earlier requests reach: only what lies behind that is new.
  reach AS (
    SELECT
      scope,
      ts_ns,
      end_ns,
      MAX(end_ns) OVER (
        PARTITION BY
          run,
          scope,
          pid
        ORDER BY ts_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS process_end_ns,
      MAX(end_ns) OVER (
        PARTITION BY
          run
        ORDER BY ts_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS run_end_ns
    FROM timed
  ),
  spent AS (
    SELECT
      scope,
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
    GROUP BY
      scope
  ),
  scoped AS MATERIALIZED (
    SELECT scope, time_sum, wall, known, syncs FROM spent
    UNION ALL
    SELECT
      'all',
      SUM(time_sum),
      SUM(run_wall),
      COALESCE(SUM(known), 0),
      COALESCE(SUM(syncs), 0)
    FROM spent
  ),
  marked AS (
    SELECT
      mark.run,
      mark.mark_id,
      sync.ts_ns,
      sync.ts_ns + sync.dur_ns AS end_ns,
      sync.syscall_ns,
      sync.writeback_ns,
      sync.bytes
    -- CROSS: for each mark its requests, found by time, never the other way.
    FROM syncline_mark AS mark
    CROSS JOIN syncline_sync AS sync
    WHERE
      sync.run = mark.run
      AND sync.ts_ns >= mark.ts_ns
      AND sync.ts_ns < mark.ts_ns + mark.dur_ns
  ),
  mark_reach AS (
    SELECT
      ts_ns,
      end_ns,
      syscall_ns,
      writeback_ns,
      bytes,
      MAX(end_ns) OVER (
        PARTITION BY
          run,
          mark_id
        ORDER BY ts_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS mark_end_ns
    FROM marked
  ),
  per_mark AS (
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
  per_mark_count AS (SELECT COUNT(*) AS marks FROM syncline_mark),
  -- Tables that a high-level log lacks are empty; their sums mean nothing then.
  whole_input AS (
    SELECT CASE WHEN COUNT(*) = 0 THEN 1 END AS yes
    FROM syncline_meta
    WHERE
      key = 'tables'
  ),
  unmatched AS (SELECT COUNT(*) AS calls FROM syncline_call WHERE unmatched),
  background AS (
    SELECT COUNT(*) AS bios, COALESCE(SUM(bytes), 0) AS bytes
    FROM syncline_bio
    WHERE
      origin = 'background'
  ),
  -- Where no request tells its bios, no source has looked for any.
  bios_seen AS (
    SELECT
      CASE
        WHEN COUNT(*) = 0
        OR COUNT(bios) > 0
        OR (SELECT COUNT(*) FROM syncline_bio) > 0 THEN 1
      END AS seen
    FROM syncline_sync
  ),
  loss AS (
    SELECT COALESCE(SUM(count), 0) AS events
    FROM syncline_loss
    WHERE
      severity = 'loss'
  ),
  metric AS (
    SELECT
      1 AS place,
      'runs' AS metric,
      'all' AS scope,
      COUNT(DISTINCT run) AS value,
      'count' AS unit,
      CAST(NULL AS BIGINT) AS known,
      CAST(NULL AS BIGINT) AS syncs
    FROM syncline_meta
    UNION ALL
    SELECT 2, 'syncs', 'all', syncs, 'count', NULL, NULL FROM total
    UNION ALL
    SELECT 3, 'syncs', 'op:' || op, syncs, 'count', NULL, NULL FROM operation
    UNION ALL
    SELECT 4, 'unique_files', 'all', files, 'count', file_count, syncs
    FROM total
    UNION ALL
    SELECT
      5,
      'empty_share',
      'all',
      CAST(empty AS DOUBLE) / NULLIF(whole, 0),
      'share',
      COALESCE(whole, 0),
      syncs
    FROM total
    UNION ALL
    SELECT
      6,
      'syscall_latency_avg',
      'all',
      CAST(syscall_sum AS DOUBLE) / NULLIF(syscall_count, 0),
      'ns',
      syscall_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      7,
      'syscall_latency_p50',
      'all',
      syscall_p50,
      'ns',
      syscall_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      8,
      'syscall_latency_p90',
      'all',
      syscall_p90,
      'ns',
      syscall_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      9,
      'syscall_latency_p99',
      'all',
      syscall_p99,
      'ns',
      syscall_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      10,
      'syscall_latency_p999',
      'all',
      syscall_p999,
      'ns',
      syscall_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      11,
      'syscall_latency_max',
      'all',
      syscall_max,
      'ns',
      syscall_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      12,
      'syscall_latency_sum',
      'all',
      syscall_sum,
      'ns',
      syscall_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      13,
      'writeback_latency_avg',
      'all',
      CAST(writeback_sum AS DOUBLE) / NULLIF(writeback_count, 0),
      'ns',
      writeback_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      14,
      'writeback_latency_p50',
      'all',
      writeback_p50,
      'ns',
      writeback_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      15,
      'writeback_latency_p90',
      'all',
      writeback_p90,
      'ns',
      writeback_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      16,
      'writeback_latency_p99',
      'all',
      writeback_p99,
      'ns',
      writeback_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      17,
      'writeback_latency_p999',
      'all',
      writeback_p999,
      'ns',
      writeback_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      18,
      'writeback_latency_max',
      'all',
      writeback_max,
      'ns',
      writeback_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      19,
      'writeback_latency_sum',
      'all',
      writeback_sum,
      'ns',
      writeback_count,
      syncs
    FROM total
    UNION ALL
    SELECT
      20,
      'journal_wait_avg',
      'all',
      CAST(journal_sum AS DOUBLE) / journal_count,
      'ns',
      journal_count,
      syncs
    FROM total
    WHERE
      journal_count > 0
    UNION ALL
    SELECT
      21,
      'journal_wait_p50',
      'all',
      journal_p50,
      'ns',
      journal_count,
      syncs
    FROM total
    WHERE
      journal_count > 0
    UNION ALL
    SELECT
      22,
      'journal_wait_p99',
      'all',
      journal_p99,
      'ns',
      journal_count,
      syncs
    FROM total
    WHERE
      journal_count > 0
    UNION ALL
    SELECT
      23,
      'journal_wait_sum',
      'all',
      journal_sum,
      'ns',
      journal_count,
      syncs
    FROM total
    WHERE
      journal_count > 0
    UNION ALL
    SELECT
      24,
      'flush_wait_avg',
      'all',
      CAST(flush_sum AS DOUBLE) / flush_count,
      'ns',
      flush_count,
      syncs
    FROM total
    WHERE
      flush_count > 0
    UNION ALL
    SELECT 25, 'flush_wait_p50', 'all', flush_p50, 'ns', flush_count, syncs
    FROM total
    WHERE
      flush_count > 0
    UNION ALL
    SELECT 26, 'flush_wait_p99', 'all', flush_p99, 'ns', flush_count, syncs
    FROM total
    WHERE
      flush_count > 0
    UNION ALL
    SELECT 27, 'flush_wait_sum', 'all', flush_sum, 'ns', flush_count, syncs
    FROM total
    WHERE
      flush_count > 0
    UNION ALL
    SELECT
      28,
      'writeback_amount_avg',
      'all',
      CAST(amount.sum AS DOUBLE) / NULLIF(amount.count, 0),
      'bytes',
      amount.count,
      total.syncs
    FROM amount
    CROSS JOIN total
    UNION ALL
    SELECT
      29,
      'writeback_amount_p50',
      'all',
      p50,
      'bytes',
      amount.count,
      total.syncs
    FROM amount
    CROSS JOIN total
    UNION ALL
    SELECT
      30,
      'writeback_amount_p99',
      'all',
      p99,
      'bytes',
      amount.count,
      total.syncs
    FROM amount
    CROSS JOIN total
    UNION ALL
    SELECT
      31,
      'writeback_amount_max',
      'all',
      max,
      'bytes',
      amount.count,
      total.syncs
    FROM amount
    CROSS JOIN total
    UNION ALL
    SELECT
      32,
      'writeback_amount_sum',
      'all',
      COALESCE(amount_sum, 0),
      'bytes',
      amount_count,
      syncs
    FROM total
    UNION ALL
    SELECT 33, 'sync_time_sum', scope, COALESCE(time_sum, 0), 'ns', known, syncs
    FROM scoped
    UNION ALL
    SELECT 34, 'sync_wall_time', scope, COALESCE(wall, 0), 'ns', known, syncs
    FROM scoped
    UNION ALL
    SELECT
      35,
      'parallelism',
      scope,
      CAST(time_sum AS DOUBLE) / NULLIF(wall, 0),
      'ratio',
      known,
      syncs
    FROM scoped
    UNION ALL
    SELECT
      36,
      'attribution_share',
      'exact',
      CAST(exact AS DOUBLE) / NULLIF(attributed, 0),
      'share',
      attributed,
      syncs
    FROM total
    UNION ALL
    SELECT
      37,
      'attribution_share',
      'inferred',
      CAST(inferred AS DOUBLE) / NULLIF(attributed, 0),
      'share',
      attributed,
      syncs
    FROM total
    UNION ALL
    SELECT
      38,
      'attribution_share',
      'unknown',
      CAST(unknown AS DOUBLE) / NULLIF(attributed, 0),
      'share',
      attributed,
      syncs
    FROM total
    UNION ALL
    SELECT 39, 'incomplete', 'start', COALESCE(no_start, 0), 'count', NULL, NULL
    FROM total
    UNION ALL
    SELECT 40, 'incomplete', 'end', COALESCE(no_end, 0), 'count', NULL, NULL
    FROM total
    UNION ALL
    SELECT 41, 'incomplete', 'bio', COALESCE(no_bio, 0), 'count', NULL, NULL
    FROM total
    UNION ALL
    SELECT 42, 'unmatched_calls', 'all', calls * yes, 'count', NULL, NULL
    FROM unmatched
    CROSS JOIN whole_input
    UNION ALL
    SELECT 43, 'background_bios', 'all', bios * yes * seen, 'count', NULL, NULL
    FROM background
    CROSS JOIN bios_seen
    CROSS JOIN whole_input
    UNION ALL
    SELECT
      44,
      'background_bytes',
      'all',
      bytes * yes * seen,
      'bytes',
      NULL,
      NULL
    FROM background
    CROSS JOIN bios_seen
    CROSS JOIN whole_input
    UNION ALL
    SELECT 45, 'losses', 'all', events * yes, 'count', NULL, NULL
    FROM loss
    CROSS JOIN whole_input
    UNION ALL
    SELECT 46, 'marks', 'all', marks, 'count', NULL, NULL
    FROM per_mark_count
    WHERE
      marks > 0
    UNION ALL
    SELECT
      47,
      'syncs_per_mark',
      'all',
      CAST(syncs AS DOUBLE) / marks,
      'count',
      NULL,
      NULL
    FROM per_mark
    CROSS JOIN per_mark_count
    WHERE
      marks > 0
    UNION ALL
    SELECT
      48,
      'syscall_latency_per_mark',
      'all',
      CAST(syscall AS DOUBLE) / marks,
      'ns',
      syscall_count,
      syncs
    FROM per_mark
    CROSS JOIN per_mark_count
    WHERE
      marks > 0
    UNION ALL
    SELECT
      49,
      'writeback_latency_per_mark',
      'all',
      CAST(writeback AS DOUBLE) / marks,
      'ns',
      writeback_count,
      syncs
    FROM per_mark
    CROSS JOIN per_mark_count
    WHERE
      marks > 0
    UNION ALL
    SELECT
      50,
      'writeback_amount_per_mark',
      'all',
      CAST(amount AS DOUBLE) / marks,
      'bytes',
      amount_count,
      syncs
    FROM per_mark
    CROSS JOIN per_mark_count
    WHERE
      marks > 0
    UNION ALL
    SELECT
      51,
      'sync_wall_time_per_mark',
      'all',
      CAST(wall AS DOUBLE) / marks,
      'ns',
      wall_count,
      syncs
    FROM per_mark
    CROSS JOIN per_mark_count
    WHERE
      marks > 0
  )
SELECT
  metric,
  scope,
  -- A sum over requests none of which has a known value is no zero.
  CASE
    WHEN known > 0
    OR syncs = 0
    OR syncs IS NULL THEN CAST(value AS DOUBLE)
  END AS value,
  unit,
  CAST(known AS BIGINT) AS known,
  CAST(syncs AS BIGINT) AS syncs
FROM metric
ORDER BY
  place,
  scope;
