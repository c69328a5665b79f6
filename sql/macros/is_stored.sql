-- Whether a name is that of a file on a disk, which may need a sync.
--
-- Not so are a pipe or a socket, which is `pipe:[INODE]`, memory, which is
-- `/memfd:NAME`, and what is below /dev, /proc and /sys.
--
-- Result: 1 or 0.
--
-- Example: SELECT path FROM syncline_file_op WHERE is_stored!(path) = 1
CREATE PERFETTO MACRO is_stored(
  -- A path.
  path Expr
)
RETURNS Expr
AS
(
  CASE
    WHEN $path LIKE '%:[%'
    AND $path NOT LIKE '/%' THEN 0
    WHEN $path LIKE '/memfd:%' THEN 0
    WHEN SUBSTR($path, 1, 5) IN ('/dev/', '/sys/') THEN 0
    WHEN SUBSTR($path, 1, 6) = '/proc/' THEN 0
    ELSE 1
  END
);
