-- What threads did to files, and the syncs, in one order.
--
-- A call that returned an error changed nothing, so it has no row unless it is
-- a sync. A thread makes one call after the other, so a call has ended when its
-- thread makes the next one, whatever the recorder measured.
--
-- Result: a row a step, with the columns of syncline_file_op that say what was
-- done, and
--   seq       Number of the step, by its start.
--   end_ns    When it had ended at the latest. If it has returned and nothing
--             says when, a time after all others. Null if it may not have.
--   least_ns  When it can have ended at the earliest: `end_ns` if its length is
--             recorded, else when it began.
--   is_sync   1 for a sync of a file or of everything.
--   is_dirty  1 if it changed data or a size, so the file needs a sync.
--   empties   1 for an open that empties the file if it was there (O_TRUNC).
--             `is_dirty` is 1 only if it was; whether it was may be unknown.
--   proc      Its process, or its thread if that is not known.
--
-- Example: WITH place AS (SELECT * FROM file_order!())
--   SELECT path, COUNT(*) FROM file_steps!(place) WHERE is_dirty = 1
--   GROUP BY path
CREATE PERFETTO MACRO file_steps(
  -- The rows of file_order, as a table or a table of WITH.
  places TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    -- Writes that are durable when they return.
    _durable AS (
      SELECT DISTINCT run, tid, ts_ns
      FROM syncline_sync
      WHERE op = 'write' AND ret >= 0
    ),
    -- Syncs, with what their calls say. sync() has a request for each file
    -- system, and lasts until the last one has ended.
    _sync AS (
      SELECT
        sync.*,
        call.incomplete AS missing,
        CASE
          WHEN sync.op = 'sync' THEN COALESCE(call.syscall_ns, call.dur_ns)
          ELSE sync.dur_ns
        END AS lasted_ns
      FROM syncline_sync AS sync
      LEFT JOIN syncline_sync_call AS call
        ON call.run = sync.run
        AND call.call_sync_id = sync.sync_id
    )
  SELECT
    place.seq AS seq,
    file.run AS run,
    file.ts_ns AS ts_ns,
    CASE
      WHEN file.op <> 'exit' THEN COALESCE(
        earlier!((file.ts_ns + file.dur_ns), place.next_ns),
        CASE
          WHEN file.ret IS NOT NULL THEN CAST(4611686018427387904 AS BIGINT)
        END
      )
    END AS end_ns,
    CASE
      WHEN file.dur_ns IS NULL THEN file.ts_ns
      ELSE earlier!((file.ts_ns + file.dur_ns), place.next_ns)
    END AS least_ns,
    file.tid AS tid,
    file.pid AS pid,
    COALESCE(file.pid, file.tid) AS proc,
    file.comm AS comm,
    file.op AS op,
    file.path AS path,
    -- As of a rename of a file to its own name.
    COALESCE(idle.path, file.to_path) AS to_path,
    file.flags AS flags,
    CASE WHEN file.created THEN 1 WHEN NOT file.created THEN 0 END AS created,
    file.offset_bytes AS offset_bytes,
    file.bytes AS bytes,
    file.ret AS ret,
    file.stack AS stack,
    0 AS is_sync,
    CASE
      WHEN durable.ts_ns IS NOT NULL THEN 0
      WHEN INSTR(file.flags, 'RWF_DSYNC') > 0
      OR INSTR(file.flags, 'RWF_SYNC') > 0 THEN 0
      WHEN file.op = 'write'
      AND COALESCE(file.bytes, 1) > 0 THEN 1
      WHEN file.op IN ('truncate', 'allocate') THEN 1
      WHEN file.op = 'open'
      AND file.flags LIKE '%O_TRUNC%'
      AND NOT file.created THEN 1
      ELSE 0
    END AS is_dirty,
    CASE
      WHEN file.op = 'open'
      AND file.flags LIKE '%O_TRUNC%'
      AND NOT COALESCE(file.created, FALSE) THEN 1
      ELSE 0
    END AS empties
  FROM syncline_file_op AS file
  JOIN $places AS place
    ON place.is_sync = 0
    AND place.run = file.run
    AND place.id = file.op_id
  LEFT JOIN idle_renames!() AS idle
    ON idle.run = file.run
    AND idle.op_id = file.op_id
  LEFT JOIN _durable AS durable
    ON file.op = 'write'
    AND durable.run = file.run
    AND durable.tid = file.tid
    AND durable.ts_ns = file.ts_ns
  WHERE
    file.op NOT IN ('close', 'dup')
    AND (file.op = 'exit' OR COALESCE(file.ret, 0) >= 0)
  UNION ALL
  SELECT
    place.seq, sync.run, sync.ts_ns,
    -- One whose start is missing began before `ts_ns`, so nobody knows what it
    -- covers.
    CASE
      WHEN COALESCE(sync.missing, '') NOT IN ('start', 'end') THEN COALESCE(
        earlier!((sync.ts_ns + sync.lasted_ns), place.next_ns),
        CASE
          WHEN sync.ret IS NOT NULL THEN CAST(4611686018427387904 AS BIGINT)
        END
      )
    END,
    CASE
      WHEN sync.lasted_ns IS NULL THEN sync.ts_ns
      ELSE earlier!((sync.ts_ns + sync.lasted_ns), place.next_ns)
    END,
    sync.tid, sync.pid,
    COALESCE(sync.pid, sync.tid),
    sync.comm,
    COALESCE(sync.op, 'fsync'),
    sync.path,
    CAST(NULL AS TEXT),
    CAST(NULL AS TEXT),
    CAST(NULL AS INTEGER),
    CAST(NULL AS BIGINT),
    CAST(NULL AS BIGINT),
    -- sync() has a request for each file system, and returns the error of none.
    CASE
      WHEN sync.op = 'sync' THEN COALESCE(refused.ret, sync.ret, 0)
      ELSE sync.ret
    END,
    sync.stack, 1, 0, 0
  FROM _sync AS sync
  JOIN $places AS place
    ON place.is_sync = 1
    AND place.run = sync.run
    AND place.id = sync.sync_id
  LEFT JOIN (
    SELECT run, call_sync_id, MIN(ret) AS ret
    FROM (
      SELECT run, call_sync_id, ret FROM syncline_sync WHERE ret < 0
      UNION ALL
      SELECT run, call_sync_id, ret FROM unreported_failures!()
    ) AS _part
    GROUP BY run, call_sync_id
  ) AS refused
    ON refused.run = sync.run
    AND refused.call_sync_id = sync.sync_id
);
