-- The sum of the writeback latencies that are known.
--
-- Result: a number, for the syncs of a group. Null, and not 0, if only empty
--   syncs have a latency, which is 0, while the others have none: those with
--   bios, and those of which it is not known whether they have.
--
-- Example: SELECT op, writeback_sum!(sync) FROM syncline_sync_call AS sync
--   GROUP BY op
CREATE PERFETTO MACRO writeback_sum(
  -- The name of a table of syncs in the FROM clause, with `bios` and
  -- `writeback_ns`.
  sync Expr
)
RETURNS Expr
AS
(
  CASE
    WHEN COUNT(CASE WHEN $sync.bios = 0 THEN NULL ELSE 1 END) = 0
    OR MAX(CASE WHEN $sync.writeback_ns >= 0 THEN $sync.bios END) > 0 THEN SUM(
      $sync.writeback_ns
    )
  END
);
