-- The starts and the ends of syncs, in order, and how many are in flight after
-- each. syncline_parallel is computed from it.
--
-- Result: two rows a sync whose length is known and above 0, with `run`,
--   `sync_id` and
--   position   1, 2, 3... in each run, in the order of time. An end comes
--              before a start at the same time: a sync is in flight from its
--              start up to, but not including, its end.
--   flying     How many syncs are in flight from here on.
--   flown      Integral of `flying` over the time until here.
--   shared_ns  Time until here in which several were in flight.
--
-- Example: SELECT MAX(flying) FROM flight_edges!()
CREATE PERFETTO MACRO flight_edges()
RETURNS TableOrSubquery
AS
(
  WITH
    _edge AS (
      SELECT run, sync_id, ts_ns AS _edge_ns, 1 AS _step
      FROM syncline_sync_call
      WHERE dur_ns > 0
      UNION ALL
      SELECT run, sync_id, ts_ns + dur_ns AS _edge_ns, -1 AS _step
      FROM syncline_sync_call
      WHERE dur_ns > 0
    ),
    _flight AS (
      SELECT
        run, sync_id,
        ROW_NUMBER() OVER _in_order AS position,
        SUM(_step) OVER _in_order AS flying,
        LEAD(_edge_ns) OVER _in_order - _edge_ns AS _gap_ns
      FROM _edge
      WINDOW _in_order AS (PARTITION BY run ORDER BY _edge_ns, _step, sync_id)
    )
  SELECT
    run, sync_id, position, flying,
    COALESCE(SUM(flying * _gap_ns) OVER _past, 0) AS flown,
    COALESCE(SUM(_gap_ns) FILTER (WHERE flying > 1) OVER _past, 0) AS shared_ns
  FROM _flight
  WINDOW
    _past AS (
      PARTITION BY run
      ORDER BY position
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
);
