-- Files that may be others than their names say: events were lost, a name has
-- no folder, its folder was renamed, it was exchanged for another, or was used
-- by a descriptor from before it was given to another file; or they were
-- renamed too often.
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
  SELECT _name.run, file_id
  FROM _name
  JOIN syncline_loss AS _loss ON _loss.run = _name.run
  WHERE _loss.severity = 'loss' AND _loss.count > 0
);
