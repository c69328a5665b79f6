-- Runs whose clock is so coarse that it does not say which call came first.
--
-- Result: a row for each, with `run`.
--
-- Example: SELECT run FROM coarse_runs!()
CREATE PERFETTO MACRO coarse_runs()
RETURNS TableOrSubquery
AS
(
  SELECT run
  FROM syncline_meta
  WHERE key = 'time_resolution_ns' AND CAST(value AS BIGINT) >= 1000000
);
