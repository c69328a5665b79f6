-- Losses: what is missing from the log, and what that means.
--
-- Of severity loss: something is missing from the statistics. Of severity info:
-- counted for completeness. A high-level log does not hold its losses.
--
-- Columns:
--   reason       text   What happened, as one word.
--   severity     text   loss or info.
--   count        count  How often.
--   meaning      prose  What it means and what to do.
--   example      prose  One case, as file:line: text.
--   first_ts_ns  time   First time that it happened, where it has one.
--   last_ts_ns   time   Last time.
--   run          text   The run, where the input holds several.
SELECT reason, severity, count, meaning, example, first_ts_ns, last_ts_ns, run
FROM syncline_loss
ORDER BY
  CASE severity WHEN 'loss' THEN 0 ELSE 1 END,
  count DESC,
  reason,
  run;
