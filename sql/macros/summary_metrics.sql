-- The metrics of the report `summary`, in its order.
--
-- Result: a row a metric, with
--   place      Its number.
--   measure    What is measured, such as syscall_latency.
--   statistic  Of its distribution, such as p99. Null if it has none. The name
--              of the metric is measure_statistic.
--   unit       count, ns, bytes, share (of 1) or ratio.
--
-- Example: SELECT measure FROM summary_metrics!() WHERE unit = 'share'
CREATE PERFETTO MACRO summary_metrics()
RETURNS TableOrSubquery
AS
(
  WITH
    _metric(place, measure, statistic, unit) AS (
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
    )
  SELECT place, measure, statistic, unit FROM _metric
);
