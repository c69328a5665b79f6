-- Why a verdict on a file may be wrong: steps that may concern it, and that the
-- recording does not show as they were.
--
-- Columns:
--   run     text   Name of the run.
--   path    text   The file; null for all files.
--   ok      count  1 if a file that looks right may be wrong.
--   wrong   count  1 if a file that looks wrong may be right.
--   reason  text   Why, by a name of syncline/check/wording.py.
--   seq     id     The first such step. Null if it is lost.
--   steps   count  How many there are.
SELECT
  run,
  CAST(NULL AS TEXT) AS path,
  1 AS ok,
  1 AS wrong,
  'lost' AS reason,
  CAST(NULL AS BIGINT) AS seq,
  CAST(SUM(count) AS BIGINT) AS steps
FROM syncline_loss
WHERE severity = 'loss' AND count > 0
GROUP BY run
UNION ALL
-- A write, or a new name, to a file that is not known.
SELECT run, CAST(NULL AS TEXT), 1, 0, 'unknown', MIN(seq), COUNT(*)
FROM _syncline_check_op
WHERE
  path IS NULL
  AND op IN ('write', 'truncate', 'allocate', 'map', 'rename', 'link', 'unlink')
GROUP BY run
UNION ALL
-- A sync of a file, or of a file system, that is not known.
SELECT run, CAST(NULL AS TEXT), 0, 1, 'unknown', MIN(seq), COUNT(*)
FROM _syncline_check_op
WHERE is_sync = 1 AND op <> 'sync' AND path IS NULL AND COALESCE(ret, 0) >= 0
GROUP BY run
UNION ALL
-- sync() returns no error when a device or a journal fails.
SELECT run, CAST(NULL AS TEXT), 1, 0, 'refused', MIN(seq), COUNT(*)
FROM doubtful_syncs!(_syncline_check_op)
WHERE seq IN (SELECT seq FROM _syncline_check_op WHERE op = 'sync')
GROUP BY run
UNION ALL
-- A mapping is of the file, whatever name it has before or after.
SELECT name.run, name.path, 1, 0, 'mapped', MIN(op.seq), COUNT(*)
FROM _syncline_check_op AS op
JOIN (
  SELECT
    name.run AS run,
    name.path AS path,
    COALESCE(renamed.file_id, name.name_id) AS file_id
  FROM _syncline_check_life AS name
  LEFT JOIN _syncline_check_renamed AS renamed ON renamed.name_id = name.name_id
) AS name
  ON name.file_id = op.file_id
WHERE op.op = 'map' AND op.path IS NOT NULL
GROUP BY name.run, name.path
UNION ALL
-- A name whose folder is not known may be another one than it looks.
SELECT run, path, 1, 1, 'relative', MIN(seq), COUNT(*)
FROM (
  SELECT run, path, seq, op FROM _syncline_check_op
  UNION ALL
  SELECT run, to_path, seq, op
  FROM _syncline_check_op
  WHERE op IN ('rename', 'link')
) AS name
WHERE
  path NOT GLOB '/*'
  AND op IN ('open', 'truncate', 'rename', 'link', 'unlink')
GROUP BY run, path
UNION ALL
SELECT run, path, 1, 1, 'exchanged', MIN(seq), COUNT(*)
FROM (
  SELECT run, path, seq, flags FROM _syncline_check_op WHERE op = 'rename'
  UNION ALL
  SELECT run, to_path, seq, flags FROM _syncline_check_op WHERE op = 'rename'
) AS name
WHERE flags GLOB '*RENAME_EXCHANGE*'
GROUP BY run, path
UNION ALL
-- A call that never returned may have had its effect.
SELECT run, path, 1, 1, 'unreturned', MIN(seq), COUNT(*)
FROM (
  SELECT run, path, seq, op, ret FROM _syncline_check_op
  UNION ALL
  SELECT run, to_path, seq, op, ret
  FROM _syncline_check_op
  WHERE op IN ('rename', 'link')
) AS name
WHERE
  path IS NOT NULL
  AND ret IS NULL
  AND op IN ('rename', 'link', 'unlink', 'write', 'truncate')
GROUP BY run, path;
