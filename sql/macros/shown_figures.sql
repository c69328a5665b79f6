-- What the input can show. Figures of the rest are null, not 0.
--
-- A high-level log has only requests. A log of blktrace has bios, and no event
-- of a sync; of several runs, others may have them.
--
-- Result: one row, with
--   runs            Number of runs.
--   has_tables      Whether the input has more than requests.
--   has_bios        Whether bios are recorded.
--   has_syncs       Whether syncs are recorded in a run.
--   all_have_syncs  Whether they are in each.
--   shows_overlaps  Whether the times of all are fine enough to say which syncs
--                   were in flight at once.
--
-- Example: SELECT runs FROM shown_figures!() WHERE has_bios
CREATE PERFETTO MACRO shown_figures()
RETURNS TableOrSubquery
AS
(
  WITH
    _run AS (
      SELECT
        COUNT(DISTINCT run) AS runs,
        COUNT(DISTINCT
          CASE WHEN key = 'syncs_recorded' AND value = 'no' THEN run END
        ) AS _without_syncs,
        COUNT(CASE WHEN key = 'tables' THEN 1 END) AS _without_tables,
        COUNT(
          CASE
            WHEN key = 'time_resolution_ns'
            AND CAST(value AS BIGINT) >= 1000000 THEN 1
          END
        ) AS _coarse
      FROM syncline_meta
    ),
    _request AS (
      SELECT COUNT(*) AS _requests, COUNT(bios) AS _with_bios FROM syncline_sync
    ),
    _bio AS (SELECT COUNT(*) AS _bios FROM syncline_bio)
  SELECT
    runs,
    _without_tables = 0 AS has_tables,
    _without_tables = 0
    AND (_requests = 0 OR _with_bios + _bios > 0) AS has_bios,
    _requests > 0
    OR _without_syncs = 0
    OR _without_syncs < runs AS has_syncs,
    _without_syncs = 0 AS all_have_syncs,
    _coarse = 0 AS shows_overlaps
  FROM _run
  CROSS JOIN _request
  CROSS JOIN _bio
);
