-- Sync requests: one pass through a file system's sync function for one file.
--
-- All columns but the times are arguments of the request's slice. They are
-- taken out once, here, so that no query has to.

-- Sync requests, one row each, in the order of time.
CREATE OR REPLACE PERFETTO TABLE syncline_sync (
  -- Entry of its syscall where there is one, else `sync_start`, else its first
  -- event in the log.
  ts_ns TIMESTAMP,
  -- From ts_ns to `sync_end`. Null when start or end is missing.
  dur_ns DURATION,
  -- Thread. Null where the source has only processes.
  tid LONG,
  -- Process. Null where the source has only threads.
  pid LONG,
  -- Name of the thread.
  comm STRING,
  -- Name of the process. Null where unknown.
  process STRING,
  -- The syscall: fsync, fdatasync, msync, sync, syncfs, ... Null with no call.
  op STRING,
  -- Whether only data was asked for, as the file system saw it. Null when the
  -- start is missing.
  datasync BOOL,
  -- File. Null where unknown.
  path STRING,
  -- Device as `major,minor`. Null where unknown.
  dev STRING,
  -- Inode. Null where unknown.
  ino LONG,
  -- Name of the file system.
  fs STRING,
  -- The tracer's id of the request. Above 2^63-1 it is shown as its two's
  -- complement. Null where the source tells none.
  id LONG,
  -- As returned: 0 or a negative errno. Null when the end is missing.
  ret LONG,
  -- Syscall latency: from the call's entry to its exit where that was recorded,
  -- else to `sync_end`. Null with no call, or when start or end is missing.
  syscall_ns DURATION,
  -- Writeback latency: from the first bio_submit to the last bio_complete. 0
  -- with no bio. Null when a submit, a completion, the start or the end is
  -- missing.
  writeback_ns DURATION,
  -- From `sync_start` to the first bio_submit. Null with no bio or where a
  -- bound is missing.
  before_submit_ns LONG,
  -- From the last bio_complete to `sync_end`; negative when a bio completed
  -- after the request had ended. Null with no bio or where a bound is missing.
  after_complete_ns LONG,
  -- Waiting for a commit of the journal, or making one; what lies in another is
  -- counted once. 0 with none. Null where the recorder or the file system does
  -- not tell, or one end of a wait is missing.
  journal_ns LONG,
  -- In cache flushes that its thread asked for; those of a journal's thread are
  -- in journal_ns, and f2fs' checkpoint has some in both. 0 and null as above.
  flush_ns LONG,
  -- What of `sync_start` to `sync_end` is in none of writeback_ns, journal_ns
  -- and flush_ns, of which two may overlap. Null where one of them is.
  residue_ns LONG,
  -- Sum of its folios, as added; without them, of its bios. This and the next
  -- three are null where the source does not tell.
  bytes LONG,
  -- Number of its folios.
  folios LONG,
  -- Number of its bios.
  bios LONG,
  -- Separate runs of file offsets, after joining neighbours.
  ranges LONG,
  -- Lowest byte offset of its folios. Null with no folio.
  first_offset LONG,
  -- The byte offset just past its highest folio. Null with no folio.
  last_offset LONG,
  -- User stack of the syscall: functions folded by `;`, outermost first. Null
  -- without one.
  stack STRING,
  -- `exact`, `inferred` or `unknown`: the least sure of its edges.
  confidence STRING,
  -- Null, or what is missing: `start`, `end`, else `bio` (a bio's submit or
  -- completion).
  incomplete STRING,
  -- 1, 2, 3... in the order of the requests' first events. The key in the other
  -- tables.
  sync_id LONG,
  -- Time of `sync_start`. Null when missing.
  start_ns TIMESTAMP,
  -- Always '' here: a trace holds one run. Joins over several runs need it.
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
  -- The slice of a request cut off at one end reaches only as far as is known,
  -- and so does that of a call with no more than its entry.
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
  -- Not the name of the trace's process, which is that of a thread where the
  -- source has no better.
  extract_arg(arg_set_id, 'debug.process') AS process,
  extract_arg(arg_set_id, 'debug.op') AS op,
  extract_arg(arg_set_id, 'debug.datasync') AS datasync,
  extract_arg(arg_set_id, 'debug.path') AS path,
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
  -- A request without an id and a file system is known by its call alone.
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
