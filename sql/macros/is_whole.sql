-- Whether the start and the end of a sync were recorded. If not, it may have
-- written more than the recording holds.
--
-- Result: true or false, never null.
--
-- Example: SELECT MAX(bytes) FROM syncline_sync AS sync WHERE is_whole!(sync)
CREATE PERFETTO MACRO is_whole(
  -- The name of a table of syncs, with `incomplete`, in the FROM clause.
  sync Expr
)
RETURNS Expr
AS
(
  COALESCE($sync.incomplete, '') NOT IN ('start', 'end')
);
