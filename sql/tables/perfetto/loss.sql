-- What is missing from the log, by reason.

-- Losses, one row per reason.
CREATE OR REPLACE PERFETTO TABLE syncline_loss (
  -- What happened, as a single word.
  reason STRING,
  -- `loss`: something is missing from the statistics. `info`: counted for
  -- completeness.
  severity STRING,
  -- Number of occurrences.
  count LONG,
  -- Time of the first occurrence. Null if it has no time.
  first_ts_ns TIMESTAMP,
  -- Time of the last occurrence. Null if it has no time.
  last_ts_ns TIMESTAMP,
  -- The earliest occurrence, as `file:line: text`: the one at first_ts_ns, if
  -- it has a time. Null without an example.
  example STRING,
  -- What it means and what to do.
  meaning STRING,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
SELECT
  extract_arg(arg_set_id, 'debug.reason') AS reason,
  extract_arg(arg_set_id, 'debug.severity') AS severity,
  extract_arg(arg_set_id, 'debug.count') AS count,
  extract_arg(arg_set_id, 'debug.first_ts_ns') AS first_ts_ns,
  extract_arg(arg_set_id, 'debug.last_ts_ns') AS last_ts_ns,
  extract_arg(arg_set_id, 'debug.example') AS example,
  extract_arg(arg_set_id, 'debug.meaning') AS meaning,
  '' AS run
FROM slice
WHERE category = 'syncline.meta' AND name = 'loss_summary'
ORDER BY reason;
