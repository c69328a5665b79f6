-- Losses by which a recording may lack steps on files. A call without a
-- duration does not count, because the call itself is there.
--
-- Result: a row for each reason, with
--   run, reason, count  As in syncline_loss.
--
-- Example: SELECT reason FROM lost_steps!()
CREATE PERFETTO MACRO lost_steps()
RETURNS TableOrSubquery
AS
(
  SELECT run, reason, count
  FROM syncline_loss
  WHERE severity = 'loss' AND count > 0 AND reason <> 'duration_missing'
);
