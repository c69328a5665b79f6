-- Filter: whether one was applied, and what it left out.
--
-- One row. `filters` counts the runs with a filter. `left_out` counts syncs,
-- and calls without one, that do not pass it. It includes those that lack what
-- the filter selects by. `unmatched` counts sync calls without a request.
SELECT
  (SELECT COUNT(*) FROM syncline_meta WHERE key = 'request_filter') AS filters,
  sum_where!(count, reason IN ('filtered_out', 'filter_unknown')) AS left_out,
  sum_where!(count, reason = 'unmatched_call') AS unmatched
FROM syncline_loss;
