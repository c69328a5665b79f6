-- The sum of the writeback latencies that are known.
--
-- Result: a number, for the syncs of a group. Null, and not 0, if only empty
--   syncs have a latency, which is 0, while those with bios have none.
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
    WHEN COALESCE(MAX($sync.bios), 0) = 0
    OR MAX(CASE WHEN $sync.writeback_ns >= 0 THEN $sync.bios END) > 0 THEN SUM(
      $sync.writeback_ns
    )
  END
);
