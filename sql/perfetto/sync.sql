-- Sync requests: one pass through a file system's sync function for one file.
--
-- Most columns are arguments of the request's slice. This table extracts them
-- once for all queries.

-- Sync requests, one row each, in the order of time.
CREATE OR REPLACE PERFETTO TABLE syncline_sync (
  -- Entry of the request's syscall. `sync_start` if it has no syscall; its
  -- first event in the log if the start is missing too.
  ts_ns TIMESTAMP,
  -- Duration from ts_ns to `sync_end`. Null if the start or the end is missing.
  dur_ns DURATION,
  -- Thread id. Null if the source only has processes.
  tid LONG,
  -- Process id. Null if the source only has threads.
  pid LONG,
  -- Name of the thread. Null if unknown.
  comm STRING,
  -- Name of the process. Null if unknown.
  process STRING,
  -- Name of the sync call: fsync, fdatasync, msync, sync, syncfs,
  -- sync_file_range, or `write` for a durable write. Null if the request has no
  -- call.
  op STRING,
  -- True if the file system was asked to sync only data and the metadata needed
  -- to read it. Null if the start is missing or does not record it.
  datasync BOOL,
  -- Path of the file. Null if unknown.
  path STRING,
  -- Path of the file in the container of the thread. Null outside of containers
  -- and if unknown. Only the route dynamic-events records it.
  container_path STRING,
  -- Device of the file, as `major,minor`. Null if unknown.
  dev STRING,
  -- Inode number of the file. Null if unknown.
  ino LONG,
  -- Name of the file system. Null if the start is missing.
  fs STRING,
  -- Request id given by the tracer. An id above 2^63-1 is shown as its two's
  -- complement. Null if the source records no id, or only the call was
  -- recorded.
  id LONG,
  -- Return value: 0 or a negative errno. If only the call was recorded, the
  -- return value of the call. Null if the end is missing.
  ret LONG,
  -- Syscall latency: from the entry of the call to its exit, or to `sync_end`
  -- if the exit was not recorded. Null if the request has no call, or if the
  -- start or the end is missing.
  syscall_ns DURATION,
  -- Writeback latency: from the first bio_submit to the last bio_complete. 0
  -- without a bio. Null if a submit, a completion, the start or the end is
  -- missing, or if bios are not recorded.
  writeback_ns DURATION,
  -- From `sync_start` to the first bio_submit. Null without a bio, or if the
  -- start or a submit is missing.
  before_submit_ns LONG,
  -- From the last bio_complete to `sync_end`. Negative if a bio completed after
  -- the request ended. Null without a bio, or if the end or a completion is
  -- missing.
  after_complete_ns LONG,
  -- Time spent waiting for a commit of the journal, or making one. Time in
  -- nested waits is counted once. 0 without a wait. Null if the recorder or the
  -- file system does not record waits, or if one end of a wait is missing.
  journal_ns LONG,
  -- Time in cache flushes that the request's thread issued. Flushes issued by a
  -- journal thread are in journal_ns. A checkpoint of f2fs has flushes that are
  -- in both. 0 without a flush. Null like journal_ns.
  flush_ns LONG,
  -- Part of `sync_start` to `sync_end` that is in none of writeback_ns,
  -- journal_ns and flush_ns. These may overlap. Null if one of them is null.
  residue_ns LONG,
  -- Total size of the folios that were added to its bios. Total size of its
  -- bios if folios are not recorded. Null if bios are not recorded, or only the
  -- call was recorded.
  bytes LONG,
  -- Number of folios. Null if folios are not recorded.
  folios LONG,
  -- Number of bios. Null like bytes.
  bios LONG,
  -- Number of separate ranges of file offsets, after joining adjacent ones.
  -- Null if folios are not recorded.
  ranges LONG,
  -- Lowest file offset of the folios. Null without a folio.
  first_offset LONG,
  -- End of the folio with the highest file offset: the offset of the first byte
  -- after it. Null without a folio.
  last_offset LONG,
  -- User stack of the call: function names joined by `;`, outermost first. Null
  -- without a stack.
  stack STRING,
  -- Confidence in the relations of the request to its call, bios and waits:
  -- `exact`, `inferred` or `unknown`. The least sure one counts.
  confidence STRING,
  -- What is missing: `start`, else `end`, else `bio` (the submit or the
  -- completion of a bio). Null if the request is complete.
  incomplete STRING,
  -- Key of the request in all tables: 1, 2, 3... in the order of the requests'
  -- first events.
  sync_id LONG,
  -- Time of `sync_start`. Null if it is missing.
  start_ns TIMESTAMP,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
WITH
  request AS (
    SELECT
      slice.*,
      extract_arg(arg_set_id, 'debug.call_ts_ns') AS call_ts,
      extract_arg(arg_set_id, 'debug.incomplete') AS incomplete,
      extract_arg(arg_set_id, 'debug.sync_id') AS sync_id
    FROM slice
    WHERE
      category = 'syncline.sync'
  )
SELECT
  COALESCE(call_ts, ts) AS ts_ns,
  -- The slice of an incomplete request covers only the recorded part. The
  -- duration of a call-only request is the syscall latency of its call.
  CASE
    WHEN incomplete IN ('start', 'end') THEN NULL
    WHEN extract_arg(arg_set_id, 'debug.id') IS NULL
    AND extract_arg(arg_set_id, 'debug.fs') IS NULL THEN extract_arg(
      arg_set_id,
      'debug.syscall_ns'
    )
    ELSE ts + dur - COALESCE(call_ts, ts)
  END AS dur_ns,
  extract_arg(arg_set_id, 'debug.tid') AS tid,
  extract_arg(arg_set_id, 'debug.pid') AS pid,
  extract_arg(arg_set_id, 'debug.comm') AS comm,
  extract_arg(arg_set_id, 'debug.process') AS process,
  extract_arg(arg_set_id, 'debug.op') AS op,
  extract_arg(arg_set_id, 'debug.datasync') AS datasync,
  extract_arg(arg_set_id, 'debug.path') AS path,
  extract_arg(arg_set_id, 'debug.container_path') AS container_path,
  extract_arg(arg_set_id, 'debug.dev') AS dev,
  extract_arg(arg_set_id, 'debug.ino') AS ino,
  extract_arg(arg_set_id, 'debug.fs') AS fs,
  extract_arg(arg_set_id, 'debug.id') AS id,
  extract_arg(arg_set_id, 'debug.ret') AS ret,
  extract_arg(arg_set_id, 'debug.syscall_ns') AS syscall_ns,
  extract_arg(arg_set_id, 'debug.writeback_ns') AS writeback_ns,
  extract_arg(arg_set_id, 'debug.before_submit_ns') AS before_submit_ns,
  extract_arg(arg_set_id, 'debug.after_complete_ns') AS after_complete_ns,
  extract_arg(arg_set_id, 'debug.journal_ns') AS journal_ns,
  extract_arg(arg_set_id, 'debug.flush_ns') AS flush_ns,
  extract_arg(arg_set_id, 'debug.residue_ns') AS residue_ns,
  extract_arg(arg_set_id, 'debug.bytes') AS bytes,
  extract_arg(arg_set_id, 'debug.folios') AS folios,
  extract_arg(arg_set_id, 'debug.bios') AS bios,
  extract_arg(arg_set_id, 'debug.ranges') AS ranges,
  extract_arg(arg_set_id, 'debug.first_offset') AS first_offset,
  extract_arg(arg_set_id, 'debug.last_offset') AS last_offset,
  extract_arg(arg_set_id, 'debug.stack') AS stack,
  extract_arg(arg_set_id, 'debug.confidence') AS confidence,
  incomplete,
  sync_id,
  -- A request without an id and a file system is call-only.
  iif(
    incomplete = 'start'
    OR (extract_arg(arg_set_id, 'debug.id') IS NULL
    AND extract_arg(arg_set_id, 'debug.fs') IS NULL),
    NULL,
    ts
  ) AS start_ns,
  '' AS run
FROM request
ORDER BY
  ts_ns,
  sync_id;

-- Bios and calls name their request by sync_id, and the table is ordered by
-- time.
CREATE OR REPLACE PERFETTO INDEX _syncline_sync_id ON syncline_sync(sync_id);
