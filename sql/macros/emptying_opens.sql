-- Opens that emptied a file of which the recording has an earlier change, so
-- they change its size, although they do not say whether the file was there.
--
-- Result: a row for each, with `seq`, the number of its step.
--
-- Example: SELECT seq FROM emptying_opens!(step_of_file)
CREATE PERFETTO MACRO emptying_opens(
  -- Steps with run, file_id, seq, op and empties, as file_steps has them.
  steps TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT DISTINCT _open.seq AS seq
  FROM $steps AS _open
  JOIN (
    SELECT run, file_id, MIN(seq) AS seq
    FROM $steps
    WHERE op IN ('write', 'truncate', 'allocate')
    GROUP BY run, file_id
  ) AS _first
    ON _first.run = _open.run
    AND _first.file_id = _open.file_id
  WHERE _open.empties = 1 AND _open.seq > _first.seq
);
