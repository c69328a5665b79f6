-- Files that may be others than their names say: events were lost or have no
-- order, a name has no folder, its folder was renamed, it was exchanged for
-- another, or was used by a descriptor from before it was given to another
-- file; or they were renamed too often, or removed under one of their names.
--
-- Result: a row for each, with `run` and `file_id`.
--
-- Example: SELECT COUNT(*) FROM unsure_files!(step_of_file, known, moved)
CREATE PERFETTO MACRO unsure_files(
  -- Steps with run, seq, file_id, and path as a number of `paths`. A step with
  -- two files is one that was not followed.
  steps TableOrSubquery,
  -- The rows of known_paths, as a table or a table of WITH.
  paths TableOrSubquery,
  -- The rows of renamed_folders, likewise.
  folders TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _name AS (
      SELECT DISTINCT _step.run AS run, _step.file_id AS file_id, _path.path
      FROM $steps AS _step
      JOIN $paths AS _path ON _path.path_id = _step.path
    ),
    _living AS (
      SELECT run, path || ' (deleted)' AS path
      FROM syncline_file_op
      WHERE op = 'link' AND ret >= 0
      UNION
      SELECT run, to_path || ' (deleted)'
      FROM syncline_file_op
      WHERE op = 'link' AND ret >= 0
      UNION
      SELECT run, to_path
      FROM syncline_file_op
      WHERE op IN ('rename', 'link') AND to_path LIKE '% (deleted)'
      UNION
      SELECT run, path
      FROM syncline_file_op
      WHERE
        op = 'open'
        AND path LIKE '% (deleted)'
        AND flags LIKE '%O_CREAT%'
        AND flags NOT LIKE '%O_TMPFILE%'
    ),
    -- An exchange looks like a plain rename.
    _exchange AS (
      SELECT run, path, to_path
      FROM syncline_file_op
      WHERE flags LIKE '%RENAME_EXCHANGE%' AND COALESCE(ret, 0) >= 0
    ),
    _exchanged AS (
      SELECT run, path FROM _exchange
      UNION
      SELECT run, to_path FROM _exchange
    )
  SELECT run, file_id FROM _name WHERE path NOT LIKE '/%'
  UNION
  SELECT _name.run, file_id
  FROM _name
  JOIN _exchanged ON same!(_exchanged, _name, (run, path))
  UNION
  SELECT _name.run, file_id
  FROM _name
  JOIN stale_names!() AS _stale ON same!(_stale, _name, (run, path))
  UNION
  SELECT _name.run, file_id
  FROM _name
  JOIN $folders AS _folder
    ON _folder.run = _name.run
    AND SUBSTR(_name.path, 1, LENGTH(_folder.path) + 1) = _folder.path || '/'
  UNION
  SELECT _one.run, _one.file_id
  FROM $steps AS _one
  JOIN $steps AS _other
    ON _other.seq = _one.seq
    AND _other.file_id <> _one.file_id
  UNION
  -- An open file whose name was removed, if it may have another one, or if it
  -- is called so.
  SELECT _name.run, file_id
  FROM _name
  JOIN _living ON same!(_living, _name, (run, path))
  UNION
  SELECT _name.run, file_id
  FROM _name
  JOIN syncline_file_op AS _link ON _link.run = _name.run
  WHERE
    _name.path LIKE '% (deleted)'
    AND _link.op = 'link'
    AND (_link.path IS NULL OR SUBSTR(_link.path, 1, 6) = '/proc/')
  UNION
  SELECT _name.run, file_id
  FROM _name
  JOIN coarse_runs!() AS _coarse ON _coarse.run = _name.run
  UNION
  SELECT _name.run, file_id
  FROM _name
  JOIN lost_steps!() AS _loss ON _loss.run = _name.run
);
