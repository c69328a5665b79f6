-- Syncs of which the recording does not say whether they covered a file: those
-- of a file system, of a file without a name, and sync() after the kernel has
-- refused a sync, because sync() returns no error when a device or a journal
-- fails. One that failed itself may have covered a file of which it was not the
-- data that failed.
--
-- Result: a row for each, with
--   run, seq, ts_ns, ret  The step.
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
  SELECT of!(_sync, (run, seq, ts_ns, ret))
  FROM $steps AS _sync
  LEFT JOIN (
    SELECT run, MIN(seq) AS seq
    FROM $steps
    WHERE is_sync = 1 AND lost_data!(ret)
    GROUP BY run
  ) AS _refused
    ON _refused.run = _sync.run
  WHERE
    _sync.is_sync = 1
    AND (_sync.ret >= 0 OR lost_data!(_sync.ret))
    AND CASE
      WHEN _sync.op = 'sync' THEN _sync.ret < 0
      OR _refused.seq < _sync.seq
      ELSE _sync.op = 'syncfs'
      OR _sync.path IS NULL
    END
);
