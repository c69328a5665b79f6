-- Losses: what is missing from the log, and what that means.
--
-- Severity loss: something is missing from the statistics. Severity info:
-- counted for completeness. A high-level log does not hold its losses.
--
-- Columns:
--   reason       text   What happened, as a single word.
--   severity     text   loss or info.
--   count        count  Number of occurrences.
--   meaning      prose  What it means and what to do.
--   example      prose  One occurrence, as file:line: text.
--   first_ts_ns  time   Time of the first occurrence. Null if it has no time.
--   last_ts_ns   time   Time of the last occurrence.
--   run          text   Name of the run, if the input holds several.
SELECT reason, severity, count, meaning, example, first_ts_ns, last_ts_ns, run
FROM syncline_loss
ORDER BY
  CASE severity WHEN 'loss' THEN 0 ELSE 1 END,
  count DESC,
  reason,
  run;
