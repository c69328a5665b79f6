-- How many calls and returns of `outcomes` are not used, by reason, the most
-- frequent first.
--
-- Columns:
--   reason  text   As `outcomes` has it.
--   calls   count  How many.
SELECT
  reason,
  COUNT(*) AS calls
FROM outcomes
WHERE
  reason IS NOT NULL
GROUP BY
  reason
ORDER BY
  calls DESC,
  reason = 'other device',
  MIN(row_number);
