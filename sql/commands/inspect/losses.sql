-- Losses: events that were lost or not used, by reason, summed over the runs.
-- Losses come first, then infos.
SELECT
  reason, severity,
  CAST(SUM(count) AS BIGINT) AS count,
  MIN(meaning) AS meaning,
  MIN(example) AS example,
  COUNT(DISTINCT run) AS runs
FROM syncline_loss
WHERE count > 0
GROUP BY reason, severity
ORDER BY severity DESC, SUM(count) DESC, reason;
