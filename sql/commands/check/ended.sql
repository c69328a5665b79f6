-- The processes that ended while they were recorded, each with its last thread.
--
-- Columns:
--   run   text  Name of the run.
--   proc  id    The process.
WITH
  thread AS (
    SELECT
      run, proc, tid,
      CASE
        WHEN MAX(CASE op WHEN 'exit' THEN seq END) = MAX(seq) THEN 1
        ELSE 0
      END AS has_ended
    FROM _syncline_check_op
    WHERE proc IS NOT NULL
    GROUP BY run, proc, tid
  )
SELECT run, proc FROM thread GROUP BY run, proc HAVING MIN(has_ended) = 1;
