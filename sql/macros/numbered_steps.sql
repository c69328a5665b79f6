-- What threads did to files, and the syncs (file_steps), with numbers of
-- known_paths instead of names, and without what only a reader wants to know.
--
-- Result: a row a step, with columns of file_steps, of which path and to_path
-- are numbers.
--
-- Example: WITH place AS (SELECT * FROM file_order!()),
--   known AS (SELECT * FROM known_paths!())
--   SELECT path, COUNT(*) FROM numbered_steps!(place, known) GROUP BY path
CREATE PERFETTO MACRO numbered_steps(
  -- The rows of file_order, as a table or a table of WITH.
  places TableOrSubquery,
  -- The rows of known_paths, likewise.
  paths TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT
    of!(_step, (run, seq, ts_ns, end_ns, least_ns, comm, op, bytes)),
    of!(_step, (ret, is_sync, is_dirty, empties)),
    _old.path_id AS path,
    _new.path_id AS to_path
  FROM file_steps!($places) AS _step
  LEFT JOIN $paths AS _old ON _old.run = _step.run AND _old.path = _step.path
  LEFT JOIN $paths AS _new ON _new.run = _step.run AND _new.path = _step.to_path
);
