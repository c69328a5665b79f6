-- Losses: what is missing from the log, and what that means.
--
-- Severity loss: something is missing from the statistics. Severity info:
-- counted for completeness. A high-level log does not hold its losses.
--
-- Narrow: reason severity count meaning example
--
-- Columns:
--   reason       text   What happened, as a single word.
--   severity     text   loss or info.
--   count        count  Number of occurrences.
--   meaning      prose  What it means and what to do.
--   example      prose  The first occurrence, as file:line: text.
--   after_ns     ns     From the first event of the recording to the first
--                       occurrence. Null if one of them has no time.
--   first_ts_ns  time   Time of the first occurrence.
--   last_ts_ns   time   Time of the last occurrence.
--   run          text   Name of the run, if the input holds several.
SELECT
  reason, severity, count, meaning, example,
  first_ts_ns - start.ts_ns AS after_ns,
  first_ts_ns, last_ts_ns,
  loss.run AS run
FROM syncline_loss AS loss
-- When the first event of each run was.
LEFT JOIN (
  SELECT run AS of_run, CAST(NULLIF(value, '') AS BIGINT) AS ts_ns
  FROM syncline_meta
  WHERE key = 'first_ts_ns'
) AS start
  ON start.of_run = loss.run
ORDER BY CASE severity WHEN 'loss' THEN 0 ELSE 1 END, count DESC, reason, run;
