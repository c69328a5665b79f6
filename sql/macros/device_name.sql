-- The name of a device, such as sda.
--
-- Result: text. Null where the recording does not have it.
--
-- Example: SELECT path, device_name!(sync) FROM syncline_sync AS sync
CREATE PERFETTO MACRO device_name(
  -- The name of a table with `run` and `dev` in the FROM clause.
  of Expr
)
RETURNS Expr
AS
(
  SELECT MAX(value)
  FROM syncline_meta
  WHERE run = $of.run AND key = 'device_name.' || $of.dev
);
