-- Filter: whether one was applied, and what it left out.
--
-- One row. `filters` counts the runs with a filter. `left_out` counts syncs,
-- and calls without one, that do not pass it. It includes those that lack what
-- the filter selects by.
SELECT
  (SELECT COUNT(*) FROM syncline_meta WHERE key = 'request_filter') AS filters,
  CAST(COALESCE(SUM(count), 0) AS BIGINT) AS left_out
FROM syncline_loss
WHERE reason IN ('filtered_out', 'filter_unknown');
