-- Sync calls, with the unmatched ones, which belong to no request.

INCLUDE PERFETTO MODULE dev.syncline.known;

-- Sync calls, one row each, in the order of time.
CREATE OR REPLACE PERFETTO TABLE syncline_call (
  -- Key of the call: 1, 2, 3... in the order of the calls.
  call_id LONG,
  -- Entry of the syscall.
  ts_ns TIMESTAMP,
  -- Duration to its exit, or to the `sync_end` of its request in a log without
  -- exits of such calls. Null if neither is known, or if the exit was lost.
  dur_ns DURATION,
  -- Thread id. Null if the source only has processes.
  tid LONG,
  -- Process id. Null if the source only has threads.
  pid LONG,
  -- Name of the thread. Null if unknown.
  comm STRING,
  -- Name of the sync call: fsync, fdatasync, msync, sync, syncfs, ...
  op STRING,
  -- Return value of the syscall. Null without an exit.
  ret LONG,
  -- User stack: function names joined by `;`, outermost first. Null without a
  -- stack.
  stack STRING,
  -- Request that the call belongs to. Null for an unmatched call.
  sync_id LONG,
  -- True if no request belongs to the call: its file system was not recorded,
  -- or events were lost.
  unmatched BOOL,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
WITH
  call AS MATERIALIZED (
    SELECT
      slice.ts, slice.dur,
      iif(
        category = 'syncline.call',
        slice.name,
        extract_arg(arg_set_id, 'debug.op')
      ) AS name,
      slice.track_id, slice.arg_set_id,
      iif(category = 'syncline.call', known.call_ret, known.ret) AS call_ret,
      known.derives = 1
      AND extract_arg(arg_set_id, 'debug.full') IS NULL AS derives
    FROM slice
    CROSS JOIN _syncline_known AS known
    WHERE
      category = 'syncline.call'
      -- The slice of a call-only request stands for its call too.
      OR (category = 'syncline.sync'
      AND extract_arg(arg_set_id, 'debug.call_id') IS NOT NULL)
  ),
  placed AS MATERIALIZED (
    SELECT
      call.*,
      iif(call.derives, call.call_ret, NULL) AS usual_ret,
      COALESCE(extract_arg(call.arg_set_id, 'debug.tid'), track.tid) AS tid
    FROM call
    LEFT JOIN _syncline_track AS track
      ON call.derives
      AND track.track_id = call.track_id
  )
SELECT
  extract_arg(arg_set_id, 'debug.call_id') AS call_id,
  ts AS ts_ns,
  -- The slice of a call with an unknown end has duration 0.
  iif(extract_arg(arg_set_id, 'debug.open') IS NULL, dur, NULL) AS dur_ns,
  placed.tid AS tid,
  COALESCE(extract_arg(arg_set_id, 'debug.pid'), thread.pid) AS pid,
  COALESCE(extract_arg(arg_set_id, 'debug.comm'), thread.comm) AS comm,
  name AS op,
  COALESCE(extract_arg(arg_set_id, 'debug.ret'), usual_ret) AS ret,
  extract_arg(arg_set_id, 'debug.stack') AS stack,
  extract_arg(arg_set_id, 'debug.sync_id') AS sync_id,
  extract_arg(arg_set_id, 'debug.sync_id') IS NULL AS unmatched,
  '' AS run
FROM placed
LEFT JOIN _syncline_thread AS thread
  ON placed.derives
  AND thread.tid = placed.tid
ORDER BY ts_ns, call_id;

-- Calls are looked up by request more often than by time.
CREATE OR REPLACE PERFETTO INDEX _syncline_call_sync_id
ON syncline_call(sync_id);
