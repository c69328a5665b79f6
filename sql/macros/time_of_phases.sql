-- The time of each request in each of its phases. A request may be in a phase
-- several times.
--
-- Result: a row for each request and phase, with `run`, `sync_id`, `phase` and
--   `dur_ns`.
--
-- Example: SELECT phase, MAX(dur_ns) FROM time_of_phases!() GROUP BY phase
CREATE PERFETTO MACRO time_of_phases()
RETURNS TableOrSubquery
AS
(
  SELECT run, sync_id, phase, SUM(dur_ns) AS dur_ns
  FROM syncline_phase
  GROUP BY run, sync_id, phase
);

-- Engine: duckdb
-- Numbers of runs and phases instead of names.
CREATE PERFETTO MACRO time_of_phases()
RETURNS TableOrSubquery
AS
(
  WITH
    _name AS MATERIALIZED (
      SELECT run, phase, CAST(ROW_NUMBER() OVER () AS INTEGER) AS _number
      FROM (SELECT DISTINCT run, phase FROM syncline_phase) AS _known
    ),
    _spent AS (
      SELECT _number, sync_id, CAST(SUM(dur_ns) AS BIGINT) AS dur_ns
      FROM syncline_phase AS phase
      JOIN _name ON _name.run = phase.run AND _name.phase = phase.phase
      GROUP BY _number, sync_id
    )
  SELECT run, sync_id, phase, dur_ns
  FROM _spent
  JOIN _name ON _name._number = _spent._number
);
