-- Whether a sync returned an error after which data may be lost.
--
-- The kernel passes on whatever the device or the file system reported. What
-- the call itself may get wrong is less: EINTR, EBADF, EINVAL, ENOSYS, and
-- ERESTARTSYS with its relatives.
--
-- Result: TRUE or FALSE. Null if the value is null.
--
-- Example: SELECT path FROM syncline_sync WHERE lost_data!(ret)
CREATE PERFETTO MACRO lost_data(
  -- What the sync returned, or a negative errno.
  ret Expr
)
RETURNS Expr
AS
(
  $ret < 0 AND $ret NOT IN (-4, -9, -22, -38, -512, -513, -514, -516)
);
