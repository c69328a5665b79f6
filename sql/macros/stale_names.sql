-- Names that may have been used for a file that no longer has them: without
-- strace -y, a descriptor keeps the name by which it was opened, also after
-- that was given to another file or to none.
--
-- A write is of the file that has the name if its descriptor was opened after
-- the name was given away. If that is not known, as of a descriptor from a
-- parent, any open of the name counts.
--
-- Result: a row for each such name, with
--   run, path  The name.
--
-- Example: SELECT path FROM stale_names!()
CREATE PERFETTO MACRO stale_names()
RETURNS TableOrSubquery
AS
(
  WITH
    _inferred AS (
      SELECT DISTINCT run, path
      FROM syncline_file_op
      WHERE
        confidence = 'inferred'
        AND fd IS NOT NULL
        AND op IN ('write', 'truncate', 'allocate')
    ),
    _event AS (
      SELECT
        run, path,
        COALESCE(pid, tid) AS proc,
        CASE WHEN op IN ('open', 'dup') THEN ret ELSE fd END AS fd,
        ts_ns,
        CASE
          WHEN op IN ('open', 'dup') THEN op
          WHEN op IN ('rename', 'unlink') THEN op
          ELSE 'use'
        END AS kind
      FROM syncline_file_op
      WHERE
        op NOT IN ('send', 'map', 'link', 'symlink', 'rmdir', 'mkdir', 'close')
        AND COALESCE(ret, 0) >= 0
        AND (fd IS NOT NULL OR op <> 'truncate')
      UNION ALL
      SELECT run, to_path, NULL, NULL, ts_ns, op
      FROM syncline_file_op
      WHERE op = 'rename' AND COALESCE(ret, 0) >= 0
      UNION ALL
      SELECT run, path, NULL, NULL, ts_ns, 'sync'
      FROM syncline_sync
      WHERE op IN ('fsync', 'fdatasync') AND ret >= 0
    ),
    _past AS (
      SELECT
        run, path, kind, fd,
        MAX(CASE kind WHEN 'rename' THEN ts_ns END) OVER _name AS moved_ns,
        MAX(CASE kind WHEN 'unlink' THEN ts_ns END) OVER _name AS removed_ns,
        MAX(CASE kind WHEN 'open' THEN ts_ns END) OVER _name AS open_ns,
        MAX(CASE kind WHEN 'open' THEN ts_ns END) OVER _own AS own_ns,
        MAX(CASE kind WHEN 'dup' THEN ts_ns END) OVER _own AS dup_ns
      FROM (
        SELECT of!(_event, (run, path, proc, fd, ts_ns, kind))
        FROM _event
        JOIN _inferred ON same!(_inferred, _event, (run, path))
      ) AS _event
      WINDOW
        _name AS (PARTITION BY run, path ORDER BY ts_ns),
        _own AS (PARTITION BY run, path, proc, fd ORDER BY ts_ns)
    )
  SELECT DISTINCT run, path
  FROM _past
  -- A sync of a file that was removed says nothing of the next one.
  WHERE
    CASE kind
      WHEN 'sync' THEN moved_ns
      WHEN 'use' THEN later!(moved_ns, removed_ns)
    END
    > CASE
      WHEN fd IS NULL
      OR own_ns IS NULL
      OR dup_ns > own_ns THEN COALESCE(open_ns, -1)
      ELSE own_ns
    END
);
