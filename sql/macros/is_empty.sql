-- Whether a sync is empty: its start and end were recorded, it succeeded, and
-- it caused no bio. A sync that failed is not empty, because its data may still
-- be dirty.
--
-- Result: 1 or 0, so that SUM counts the empty syncs. Null if it is not known
--   which bios the sync caused, for example because only calls were recorded.
--
-- Example: SELECT SUM(is_empty!(sync)) FROM syncline_sync_call AS sync
CREATE PERFETTO MACRO is_empty(
  -- The name of a table of syncs in the FROM clause, with `incomplete`, `bios`
  -- and `ret`.
  sync Expr
)
RETURNS Expr
AS
(
  CASE
    WHEN $sync.bios IS NULL THEN NULL
    WHEN $sync.bios = 0
    AND COALESCE($sync.ret, 0) >= 0
    AND is_whole!($sync) THEN 1
    ELSE 0
  END
);
