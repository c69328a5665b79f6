-- Edges: losses that the begin or the end of the recording explains, by reason.
--
-- A sync that had begun before the recording lacks its start and its call: it
-- is the first one of its thread, and within a second of the begin. A sync that
-- had not ended lacks its end and that of its call, and is the last one of its
-- thread. A reason is here if no run has more of it than such syncs.
WITH
  begin_of AS (
    SELECT run, CAST(value AS BIGINT) AS ts_ns
    FROM syncline_meta
    WHERE key = 'first_ts_ns'
  ),
  placed AS (
    SELECT
      run, sync_id, ts_ns, incomplete,
      ROW_NUMBER() OVER (
        PARTITION BY run, tid, pid
        ORDER BY ts_ns ASC, sync_id ASC
      ) AS place,
      ROW_NUMBER() OVER (
        PARTITION BY run, tid, pid
        ORDER BY ts_ns DESC, sync_id DESC
      ) AS from_end
    FROM syncline_sync
  ),
  edge AS (
    SELECT
      placed.run AS run,
      SUM(
        CASE
          WHEN incomplete IN ('start', 'call')
          AND place = 1
          AND placed.ts_ns <= begin_of.ts_ns + 1000000000 THEN 1
          ELSE 0
        END
      ) AS begun,
      SUM(
        CASE
          WHEN incomplete = 'end'
          AND from_end = 1
          AND call.dur_ns IS NULL THEN 1
          ELSE 0
        END
      ) AS unended
    FROM placed
    JOIN begin_of ON begin_of.run = placed.run
    LEFT JOIN syncline_call AS call
      ON call.run = placed.run
      AND call.sync_id = placed.sync_id
    WHERE incomplete IS NOT NULL
    GROUP BY placed.run
  )
SELECT loss.reason AS reason
FROM syncline_loss AS loss
LEFT JOIN edge ON edge.run = loss.run
WHERE
  loss.count > 0
  AND loss.reason IN (
    'start_missing', 'call_missing', 'unmatched_exit', 'end_missing',
    'exit_missing'
  )
GROUP BY loss.reason
HAVING
  MIN(
    CASE
      WHEN loss.count
      <= COALESCE(
        CASE
          WHEN loss.reason IN ('end_missing', 'exit_missing') THEN edge.unended
          ELSE edge.begun
        END,
        0
      ) THEN 1
      ELSE 0
    END
  )
  = 1
ORDER BY loss.reason;
