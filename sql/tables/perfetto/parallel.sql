-- Number of syncs that were in flight at the same time as each sync.
--
-- Requests of one thread never overlap. Requests of several threads may share
-- one wait. The sum of their latencies is then more than the time really
-- waited.
--
-- The subquery is flight_edges!() of sql/macros/, written out by `python -m
-- tools.columns`.

INCLUDE PERFETTO MODULE dev.syncline.sync_call;

-- Starts and ends of the syncs in flight, in order.
CREATE OR REPLACE PERFETTO TABLE _syncline_flight AS
SELECT sync_id, position, flying, flown, shared_ns
FROM (
  WITH
    edge AS (
      SELECT run, sync_id, ts_ns AS edge_ns, 1 AS step
      FROM syncline_sync_call
      WHERE dur_ns > 0
      UNION ALL
      SELECT run, sync_id, ts_ns + dur_ns AS edge_ns, -1 AS step
      FROM syncline_sync_call
      WHERE dur_ns > 0
    ),
    flight AS (
      SELECT
        run, sync_id,
        ROW_NUMBER() OVER in_order AS position,
        SUM(step) OVER in_order AS flying,
        LEAD(edge_ns) OVER in_order - edge_ns AS gap_ns
      FROM edge
      WINDOW in_order AS (PARTITION BY run ORDER BY edge_ns, step, sync_id)
    )
  SELECT
    run, sync_id, position, flying,
    COALESCE(SUM(flying * gap_ns) OVER past, 0) AS flown,
    COALESCE(SUM(gap_ns) FILTER (WHERE flying > 1) OVER past, 0) AS shared_ns
  FROM flight
  WINDOW
    past AS (
      PARTITION BY run
      ORDER BY position
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)
ORDER BY position;

-- Maximum in flight in each block of 256 edges, so that a request that overlaps
-- thousands of others need not read every edge.
CREATE OR REPLACE PERFETTO TABLE _syncline_flight_block AS
SELECT position >> 8 AS block, MAX(flying) AS flying
FROM _syncline_flight
GROUP BY block
ORDER BY block;

-- Requests with a dur_ns above 0, one row each.
CREATE OR REPLACE PERFETTO TABLE syncline_parallel (
  -- The request.
  sync_id LONG,
  -- Maximum number of requests in flight during this one, itself included.
  parallel_max LONG,
  -- Integral of the number of requests in flight, itself included, over the
  -- duration of this one. Divided by its dur_ns, it is the average.
  parallel_ns LONG,
  -- Time during which at least one other request was in flight.
  overlap_ns DURATION,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
WITH
  own AS (
    SELECT
      sync_id,
      MIN(position) AS first,
      -- The last position at which it is still in flight.
      MAX(position) - 1 AS last,
      MAX(flown) - MIN(flown) AS parallel_ns,
      MAX(shared_ns) - MIN(shared_ns) AS overlap_ns
    FROM _syncline_flight
    GROUP BY sync_id
  )
SELECT
  sync_id,
  iif(
    last - first < 1024,
    (
      SELECT MAX(flying)
      FROM _syncline_flight
      WHERE position BETWEEN own.first AND own.last
    ),
    MAX(
      (
        SELECT MAX(flying)
        FROM _syncline_flight
        WHERE position BETWEEN own.first AND own.first | 255
      ),
      (
        SELECT MAX(flying)
        FROM _syncline_flight_block
        WHERE block BETWEEN (own.first >> 8) + 1 AND (own.last >> 8) - 1
      ),
      (
        SELECT MAX(flying)
        FROM _syncline_flight
        WHERE position BETWEEN (own.last >> 8) << 8 AND own.last
      )
    )
  ) AS parallel_max,
  parallel_ns, overlap_ns,
  '' AS run
FROM own
ORDER BY sync_id;
