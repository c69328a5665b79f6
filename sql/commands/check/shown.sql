-- The verdicts that are not ok, with the steps that they are of.
--
-- Columns: those of the steps, with other_ for the write that was not synced.
SELECT
  found.verdict AS verdict,
  found.fault AS fault,
  found.shown AS shown,
  found.doubt AS doubt,
  found.path AS path,
  found.folder AS folder,
  step.op AS op,
  step.ts_ns AS ts_ns,
  step.tid AS tid,
  step.pid AS pid,
  step.comm AS comm,
  step.path AS op_path,
  step.to_path AS to_path,
  step.stack AS stack,
  other.op AS other_op,
  other.ts_ns AS other_ts_ns,
  other.path AS other_path,
  other.stack AS other_stack,
  unsure.op AS doubt_op,
  unsure.ts_ns AS doubt_ts_ns,
  found.run AS run
FROM _syncline_check_found AS found
LEFT JOIN _syncline_check_op AS step ON step.seq = found.seq
LEFT JOIN _syncline_check_op AS other ON other.seq = found.other_seq
LEFT JOIN _syncline_check_op AS unsure ON unsure.seq = found.doubt_seq
WHERE found.verdict <> 'ok'
ORDER BY
  CASE found.verdict WHEN 'violated' THEN 0 ELSE 1 END,
  found.run, found.seq,
  found.fault;
