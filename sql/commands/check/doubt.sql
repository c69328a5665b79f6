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
WITH
  -- Each file with all its names.
  name AS (
    SELECT
      life.run AS run,
      life.path AS path,
      COALESCE(renamed.file_id, life.name_id) AS file_id
    FROM _syncline_check_life AS life
    LEFT JOIN _syncline_check_renamed AS renamed
      ON renamed.name_id = life.name_id
  ),
  exchange AS (
    SELECT run, path, to_path, seq
    FROM _syncline_check_op
    WHERE op = 'rename' AND flags GLOB '*RENAME_EXCHANGE*'
  ),
  -- The first sync of file systems that failed. It may have covered all but one
  -- of them.
  partial AS (
    SELECT run, MIN(seq) AS seq
    FROM doubtful_syncs!(_syncline_check_op)
    WHERE
      ret < 0
      AND seq IN (
        SELECT seq FROM _syncline_check_op WHERE op IN ('sync', 'syncfs')
      )
    GROUP BY run
  ),
  -- Files whose own sync failed. Nothing brings back what it has lost.
  failed AS (
    SELECT DISTINCT run, file_id
    FROM _syncline_check_op
    WHERE is_sync = 1 AND file_id IS NOT NULL AND lost_data!(ret)
  ),
  -- Steps that ended at an unknown time, and before or after which another one
  -- began.
  overtaken AS (
    SELECT of!(step, (run, file_id, seq, is_sync))
    FROM _syncline_check_op AS step
    JOIN _syncline_check_op AS next
      ON next.run = step.run
      AND next.seq = step.seq + 1
    WHERE step.least_ns < step.end_ns AND next.ts_ns < step.end_ns
  ),
  -- Steps that make a file doubtful, whatever name it has before or after.
  of_file AS (
    -- A mapping is of the file.
    SELECT run, file_id, 1 AS ok, 0 AS wrong, 'mapped' AS reason, seq
    FROM _syncline_check_op
    WHERE op = 'map' AND path IS NOT NULL
    UNION ALL
    -- A name whose folder is not known may be another one than it looks.
    SELECT run, file_id, 1, 1, 'relative', seq
    FROM _syncline_check_op
    WHERE
      (path NOT GLOB '/*' AND op IN ('open', 'truncate', 'unlink'))
      OR (op IN ('rename', 'link')
      AND (path NOT GLOB '/*' OR to_path NOT GLOB '/*'))
    UNION ALL
    SELECT name.run, name.file_id, 1, 1, 'exchanged', seq
    FROM (
      SELECT run, path, seq FROM exchange
      UNION ALL
      SELECT run, to_path, seq FROM exchange
    ) AS exchanged
    JOIN name ON same!(name, exchanged, (run, path))
    UNION ALL
    -- A descriptor from before its name was given to another file.
    SELECT name.run, name.file_id, 1, 1, 'stale', CAST(NULL AS BIGINT)
    FROM stale_names!() AS stale
    JOIN name ON same!(name, stale, (run, path))
    UNION ALL
    SELECT partial.run, file.file_id, 0, 1, 'partial', partial.seq
    FROM partial
    JOIN (SELECT DISTINCT run, file_id FROM name) AS file USING (run)
    LEFT JOIN failed ON same!(failed, file, (run, file_id))
    WHERE failed.run IS NULL
    UNION ALL
    SELECT run, file_id, 0, 1, 'untimed', seq FROM overtaken WHERE is_sync = 0
    UNION ALL
    -- A call that never returned may have had its effect.
    SELECT run, file_id, 1, 1, 'unreturned', seq
    FROM _syncline_check_op
    WHERE
      path IS NOT NULL
      AND ret IS NULL
      AND op IN ('rename', 'link', 'unlink', 'write', 'truncate')
  )
SELECT
  run,
  CAST(NULL AS TEXT) AS path,
  1 AS ok,
  1 AS wrong,
  CASE reason WHEN 'io_uring' THEN 'io_uring' ELSE 'lost' END AS reason,
  CAST(NULL AS BIGINT) AS seq,
  CAST(SUM(count) AS BIGINT) AS steps
FROM lost_steps!()
GROUP BY run, 5
UNION ALL
SELECT run, CAST(NULL AS TEXT), 1, 1, 'coarse', CAST(NULL AS BIGINT), 1
FROM coarse_runs!()
UNION ALL
-- A sync that may have ended before the step that seems to come too early, of
-- the file or of its folder.
SELECT run, CAST(NULL AS TEXT), 0, 1, 'untimed', MIN(seq), COUNT(*)
FROM overtaken
WHERE is_sync = 1
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
WHERE ret >= 0 AND seq IN (SELECT seq FROM _syncline_check_op WHERE op = 'sync')
GROUP BY run
UNION ALL
SELECT name.run, name.path, ok, wrong, reason, MIN(seq), COUNT(*)
FROM of_file
JOIN name ON same!(name, of_file, (run, file_id))
GROUP BY name.run, name.path, ok, wrong, reason;
