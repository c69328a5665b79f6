-- Syncs of which the recording does not say whether they covered a file: those
-- of a file system, of a file without a name, and sync() after the kernel has
-- refused a sync, because sync() returns no error when a device or a journal
-- fails.
--
-- Result: a row for each, with
--   run, seq, ts_ns  The step.
--
-- Example: WITH place AS (SELECT * FROM file_order!()),
--   step AS (SELECT * FROM file_steps!(place))
--   SELECT seq FROM doubtful_syncs!(step)
CREATE PERFETTO MACRO doubtful_syncs(
  -- The rows of file_steps, or of numbered_steps.
  steps TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT _sync.run AS run, _sync.seq AS seq, _sync.ts_ns AS ts_ns
  FROM $steps AS _sync
  LEFT JOIN (
    -- EIO, ENOSPC, EROFS, ESHUTDOWN, EUCLEAN, EDQUOT.
    SELECT run, MIN(seq) AS seq
    FROM $steps
    WHERE is_sync = 1 AND ret IN (-5, -28, -30, -108, -117, -122)
    GROUP BY run
  ) AS _refused
    ON _refused.run = _sync.run
  WHERE
    _sync.is_sync = 1
    AND _sync.ret >= 0
    AND CASE
      WHEN _sync.op = 'sync' THEN _refused.seq < _sync.seq
      ELSE _sync.op = 'syncfs'
      OR _sync.path IS NULL
    END
);
