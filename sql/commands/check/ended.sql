-- The processes that ended while they were recorded.
--
-- Columns:
--   run   text  Name of the run.
--   proc  id    The process.
SELECT run, proc
FROM _syncline_check_op
WHERE proc IS NOT NULL
GROUP BY run, proc
HAVING MAX(CASE op WHEN 'exit' THEN seq END) = MAX(seq);
