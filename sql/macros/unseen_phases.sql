-- The phases that the recording of some requests cannot show: their time is in
-- other phases, or in the residue.
--
-- Result: a row a group, with its columns and
--   phases  The names, such as `lock wait, flush`. With a number, of so many
--           requests of the group. Null if the recording can show all.
--
-- Example: SELECT op, phases FROM unseen_phases!(total, part, (run, op))
CREATE PERFETTO MACRO unseen_phases(
  -- Table of groups of requests, with `run`; `syncs`, their number;
  -- `waits_known`, how many of their journal_ns and flush_ns are known; and
  -- `cpu_known`, of how many requests it is known how long they waited for a
  -- CPU.
  totals TableOrSubquery,
  -- Table of the phases that the groups have, with `phase`.
  parts TableOrSubquery,
  -- Columns of both tables, among them `run`. Null is a value like any other.
  groups ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    -- The commas around the names let each be found as a whole.
    _seen AS (
      SELECT
        of!(_total, ($groups)),
        _total.syncs, _total.waits_known, _total.cpu_known,
        COALESCE(', ' || value || ',', '') AS _phases
      FROM $totals AS _total
      LEFT JOIN syncline_meta AS meta
        ON meta.run = _total.run
        AND meta.key = 'phases_seen'
    ),
    -- Waits for commits may be inferred where they are not recorded.
    _inferred AS (
      SELECT DISTINCT $groups, 1 AS _has_commit
      FROM $parts
      WHERE phase LIKE 'commit%'
    )
  SELECT
    of!(_seen, ($groups)),
    NULLIF(
      CONCAT_WS(
        ', ',
        CASE
          WHEN cpu_known = syncs THEN NULL
          WHEN cpu_known > 0 THEN 'cpu wait of '
          || CAST(syncs - cpu_known AS TEXT)
          || ' requests'
          ELSE 'cpu wait'
        END,
        CASE WHEN _phases NOT LIKE '%, lock wait,%' THEN 'lock wait' END,
        CASE WHEN _phases NOT LIKE '%, device,%' THEN 'device' END,
        CASE
          WHEN _phases LIKE '%, earlier writeback,%' THEN NULL
          ELSE 'earlier writeback'
        END,
        CASE
          WHEN _phases LIKE '%, commit wait,%'
          AND waits_known > 0 THEN NULL
          WHEN _has_commit = 1 THEN 'earlier commit, commit start'
          ELSE 'commit wait'
        END,
        -- A flush is a bio, too, where waits are not recorded.
        CASE
          WHEN _phases NOT LIKE '%, flush,%'
          OR (waits_known = 0 AND _phases LIKE '%, commit wait,%') THEN 'flush'
        END
      ),
      ''
    ) AS phases
  FROM _seen
  LEFT JOIN _inferred ON same!(_inferred, _seen, ($groups))
);
