-- For each party, the upper bound of what it cost the syncs that met it, and
-- what it cost them by comparison.
--
-- Without the party, a sync takes as long as the fastest one like it that met
-- nobody, or longer. Where fewer than 20 are like it, that is not known.
--
-- Result: a row for each party, with
--   party     Its number.
--   most_ns   The most that it cost.
--   ns        By comparison, below 0 if syncs were shorter while it was active.
--             Null unless 20 syncs met nobody but it, and 20 met nobody.
--   error_ns  Two standard errors of that. Null likewise.
--
-- Example: SELECT party, most_ns, ns FROM compared_costs!(next_to)
CREATE PERFETTO MACRO compared_costs(
  -- Table of syncs next to parties, with `party`; `is_active`, `is_met`, as
  -- of met_parties!; `waiter`, the party of the sync; `place`, `op`, `work`,
  -- which are equal where syncs are alike; `dur_ns`; `own_ns`, how long the
  -- device worked for nobody but the sync; and `quiet_ns`, its length if it met
  -- nobody, else null.
  syncs TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    -- later! returns the longer one of two lengths, earlier! the shorter one.
    _met AS (
      SELECT
        party, is_active, is_met, waiter, op, dur_ns, dur_ns
        - later!(
          own_ns,
          CASE
            WHEN COUNT(quiet_ns) OVER _alike >= 20 THEN earlier!(
              dur_ns,
              MIN(quiet_ns) OVER _alike
            )
          END
        ) AS _most_ns
      FROM $syncs
      WINDOW _alike AS (PARTITION BY party, place, waiter, op, work)
    )
  -- All syncs of one waiter and call have the error of one difference, so it is
  -- multiplied by their number, and its variance by the square of that.
  SELECT
    _amount.party AS party,
    CAST(SUM(_most_ns) AS BIGINT) AS most_ns,
    SUM(_syncs * difference) AS ns,
    2 * SQRT(SUM(CAST(_syncs AS DOUBLE) * _syncs * variance)) AS error_ns
  FROM (
    SELECT
      party, waiter, op,
      SUM(is_active) AS _syncs,
      SUM(is_active * _most_ns) AS _most_ns
    FROM _met
    GROUP BY party, waiter, op
  ) AS _amount
  LEFT JOIN mean_difference!(_met, dur_ns, is_met, (party, waiter, op)) AS _mean
    ON with_rows >= 20
    AND without_rows >= 20
    AND same!(_mean, _amount, (party, waiter, op))
  GROUP BY _amount.party
);
