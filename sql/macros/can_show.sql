-- Whether the input can show a figure of the report `summary`: one of syncs
-- needs an event of a sync, and one of what syncs had in common needs times
-- that say which of them were in flight at once.
--
-- Result: true or false, never null.
--
-- Example: SELECT can_show!(shown, 'runs') FROM shown_figures!() AS shown
CREATE PERFETTO MACRO can_show(
  -- The name of the row of `shown_figures` in the FROM clause.
  shown Expr,
  -- The name of the figure, without a statistic.
  name Expr
)
RETURNS Expr
AS
(
  ($shown.has_syncs OR $name IN ('runs', 'failed_bios', 'losses', 'marks'))
  AND ($shown.shows_overlaps
  OR $name NOT IN ('sync_wall_time', 'sync_wall_time_per_mark', 'parallelism'))
);
