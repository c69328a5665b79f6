-- What a sync was for, in one text: the path of its file, `inode N on
-- MAJOR,MINOR` if only that is recorded, [several files], [whole file systems],
-- or [unknown file].
--
-- Result: text, never null.
--
-- Example: SELECT file_name!(sync), COUNT(*) FROM syncline_sync_call AS sync
--   GROUP BY 1
CREATE PERFETTO MACRO file_name(
  -- The name of syncline_sync_call in the FROM clause.
  sync Expr
)
RETURNS Expr
AS
(
  COALESCE(
    $sync.path,
    'inode ' || CAST($sync.ino AS TEXT) || ' on ' || $sync.dev,
    '[' || $sync.what || ']',
    '[unknown file]'
  )
);
