-- Sync requests: one pass through a file system's sync function for one file.
--
-- A column is an argument of the request's slice, or follows from the call, the
-- bios and the track of the request. This table finds them once for all
-- queries.

INCLUDE PERFETTO MODULE dev.syncline.known;

INCLUDE PERFETTO MODULE dev.syncline.related;

-- Sync requests, one row each, in the order of time.
CREATE OR REPLACE PERFETTO TABLE syncline_sync (
  -- Entry of the request's syscall. `sync_start` if it has no syscall; its
  -- first event in the log if the start is missing too.
  ts_ns TIMESTAMP,
  -- Duration from ts_ns to `sync_end`. Null if the start, the end or the entry
  -- of its call is missing.
  dur_ns DURATION,
  -- Thread id. Null if the source only has processes.
  tid LONG,
  -- Process id. Null if the source only has threads.
  pid LONG,
  -- Name of the thread. Null if unknown.
  comm STRING,
  -- Name of the process. Null if unknown.
  process STRING,
  -- Control group of the process, as a path: of a container, a pod or a
  -- service. It is the one in which the recorder last saw the process. Null if
  -- unknown.
  cgroup STRING,
  -- Name of the sync call: fsync, fdatasync, msync, sync, syncfs,
  -- sync_file_range, or `write` for a durable write. Null if the request has no
  -- call, or if that is not known.
  op STRING,
  -- True if the file system was asked to sync only data and the metadata needed
  -- to read it. Null if it is not recorded, and if the event that has it is
  -- missing: the start, or the end of f2fs.
  datasync BOOL,
  -- Path of the file. Null if unknown.
  path STRING,
  -- Path of the file in the container of the thread. Null outside of containers
  -- and if unknown.
  container_path STRING,
  -- Device of the file, as `major,minor`. Null if unknown.
  dev STRING,
  -- Inode number of the file. One above 2^63-1 is shown as its two's
  -- complement. Null if unknown.
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
  -- in a log without exits of such calls. Null if the request has no call, if
  -- the start or the end is missing, or if the exit of the call was lost.
  syscall_ns DURATION,
  -- Writeback latency: from the first bio_submit to the last bio_complete. 0
  -- without a bio. Null if a submit, a completion, the start or the end is
  -- missing, if a bio may be missing altogether, or if bios are not recorded.
  writeback_ns DURATION,
  -- From `sync_start` to the first bio_submit. Null without a bio, if the start
  -- or a submit is missing, if the first bio is older than the start, or if a
  -- bio is known by its request only, which begins later.
  before_submit_ns LONG,
  -- From the last bio_complete to `sync_end`. Null without a bio, if the end or
  -- a completion is missing, or if a bio completed after the request ended.
  after_complete_ns LONG,
  -- Time spent waiting for a commit of the journal, or making one. Time in
  -- nested waits is counted once. 0 without a wait. Null if the recorder or the
  -- file system does not record waits, or if one end of a wait is missing.
  journal_ns LONG,
  -- Time in cache flushes that the request's thread issued. Flushes issued by a
  -- journal thread are in journal_ns. A flush in a checkpoint of f2fs counts in
  -- both. 0 without a flush. Null like journal_ns.
  flush_ns LONG,
  -- Part of `sync_start` to `sync_end` that is in none of writeback_ns,
  -- journal_ns and flush_ns. These may overlap. Null if one of them is null.
  other_ns LONG,
  -- Time in which the request's thread could run, and waited for a CPU: the
  -- phase `cpu wait`. 0 if it always got one. Null if it is not known all the
  -- time what the scheduler did with the thread, or if the start or the end is
  -- missing.
  cpu_wait_ns LONG,
  -- Total size of the folios that were added to its bios, and of its bios whose
  -- folios are not all recorded. Null if bios are not recorded, if a bio may be
  -- missing altogether, if neither the size nor all folios of a bio are
  -- recorded, or if only the call was recorded.
  bytes LONG,
  -- Number of folios. Null if the folios of one of its bios are not recorded.
  folios LONG,
  -- Number of bios. Null if bios are not recorded, if one may be missing
  -- altogether, or if only the call was recorded.
  bios LONG,
  -- Number of separate ranges of file offsets, after joining adjacent ones.
  -- Null if the folios of one of its bios are not recorded.
  ranges LONG,
  -- Lowest file offset of the folios. Null without a folio, or if not all of
  -- them are recorded.
  first_offset LONG,
  -- End of the folio with the highest file offset: the offset of the first byte
  -- after it. Null without a folio, or if not all of them are recorded.
  last_offset LONG,
  -- User stack of the call: function names joined by `;`, outermost first. Null
  -- without a stack.
  stack STRING,
  -- Confidence in the relations of the request to its call, bios and waits:
  -- `exact`, `inferred` or `unknown`. The least sure one counts.
  confidence STRING,
  -- What is missing: `start`, else `end`, else `call` (the entry of the call
  -- that it may have been made in), else `bio` (the submit or the completion of
  -- a bio, or a bio altogether). Null if the request is complete.
  incomplete STRING,
  -- Key of the request in all tables: 1, 2, 3... in the order of the requests'
  -- first events.
  sync_id LONG,
  -- Time of `sync_start`. Null if it is missing.
  start_ns TIMESTAMP,
  -- Key of the sync that the request is a part of: the sync_id of the first
  -- request in the same call. It is the request's own sync_id if the request is
  -- the only one of its call, or in no recorded call.
  call_sync_id LONG,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
WITH
  request AS MATERIALIZED (
    SELECT
      slice.ts, slice.dur, slice.track_id, slice.arg_set_id,
      known.dev AS known_dev,
      known.fs AS known_fs,
      known.ret AS known_ret,
      known.journal_ns AS known_journal,
      known.flush_ns AS known_flush,
      known.id_offset,
      known.derives = 1
      AND extract_arg(arg_set_id, 'debug.full') IS NULL AS derives,
      extract_arg(arg_set_id, 'debug.sync_id') AS sync_id,
      extract_arg(arg_set_id, 'debug.incomplete') AS incomplete
    FROM slice
    CROSS JOIN _syncline_known AS known
    WHERE category = 'syncline.sync'
  ),
  -- What the slice, its track, the call and the bios say.
  placed AS MATERIALIZED (
    SELECT
      request.*,
      request.derives
      AND incomplete IS NOT 'start' AS may_start,
      request.derives
      AND incomplete IS NOT 'end' AS may_end,
      COALESCE(
        extract_arg(arg_set_id, 'debug.call_ts_ns'),
        iif(extract_arg(arg_set_id, 'debug.call_id') IS NULL, NULL, request.ts),
        call.ts
      ) AS call_ts,
      call.dur AS call_dur,
      COALESCE(extract_arg(arg_set_id, 'debug.op'), call.op) AS op,
      COALESCE(extract_arg(arg_set_id, 'debug.stack'), call.stack) AS stack,
      COALESCE(extract_arg(arg_set_id, 'debug.tid'), track.tid) AS tid,
      COALESCE(
        extract_arg(arg_set_id, 'debug.fs'),
        iif(
          request.derives
          AND incomplete IS NOT 'start',
          request.known_fs, NULL
        )
      ) AS fs,
      sums.bios AS sum_bios,
      sums.submit, sums.complete,
      sums.bytes AS sum_bytes,
      sums.folios AS sum_folios,
      sums.ranges AS sum_ranges,
      sums.first_offset AS low,
      sums.last_offset AS high
    FROM request
    LEFT JOIN _syncline_track AS track
      ON request.derives
      AND track.track_id = request.track_id
    LEFT JOIN _syncline_related_call AS call
      ON request.derives
      AND call.sync_id = request.sync_id
    LEFT JOIN _syncline_related_bio AS sums
      ON request.derives
      AND sums.sync_id = request.sync_id
  ),
  identified AS MATERIALIZED (
    SELECT
      placed.*,
      iif(may_end, known_ret, NULL) AS usual_ret,
      COALESCE(extract_arg(arg_set_id, 'debug.pid'), thread.pid) AS pid,
      COALESCE(extract_arg(arg_set_id, 'debug.comm'), thread.comm) AS comm,
      COALESCE(
        extract_arg(arg_set_id, 'debug.id'),
        iif(derives AND fs IS NOT NULL, sync_id + id_offset, NULL)
      ) AS id,
      COALESCE(
        extract_arg(arg_set_id, 'debug.bios'),
        sum_bios,
        iif(derives AND fs IS NOT NULL, 0, NULL)
      ) AS bios,
      COALESCE(
        extract_arg(arg_set_id, 'debug.syscall_ns'),
        iif(may_start AND may_end, call_dur, NULL)
      ) AS syscall_ns,
      COALESCE(
        extract_arg(arg_set_id, 'debug.before_submit_ns'),
        iif(may_start AND submit >= ts, submit - ts, NULL)
      ) AS before_submit_ns,
      COALESCE(
        extract_arg(arg_set_id, 'debug.after_complete_ns'),
        iif(may_end AND complete <= ts + dur, ts + dur - complete, NULL)
      ) AS after_complete_ns,
      COALESCE(
        extract_arg(arg_set_id, 'debug.journal_ns'),
        iif(may_start AND may_end, known_journal, NULL)
      ) AS journal_ns,
      COALESCE(
        extract_arg(arg_set_id, 'debug.flush_ns'),
        iif(may_start AND may_end, known_flush, NULL)
      ) AS flush_ns,
      extract_arg(arg_set_id, 'debug.start_ns') AS said_start,
      extract_arg(arg_set_id, 'debug.call_sync_id') AS said_call
    FROM placed
    LEFT JOIN _syncline_thread AS thread
      ON placed.derives
      AND thread.tid = placed.tid
  ),
  timed AS (
    SELECT
      *,
      -- A request without an id and a file system, unless it says its start.
      COALESCE(id, fs, said_start) IS NULL AS call_only
    FROM identified
  )
SELECT
  COALESCE(call_ts, ts) AS ts_ns,
  -- The slice of an incomplete request covers only the recorded part. The
  -- duration of a call-only request is the syscall latency of its call.
  CASE
    WHEN incomplete IN ('start', 'end', 'call') THEN NULL
    WHEN call_only THEN syscall_ns
    ELSE ts + dur - COALESCE(call_ts, ts)
  END AS dur_ns,
  tid,
  timed.pid AS pid,
  comm,
  COALESCE(extract_arg(arg_set_id, 'debug.process'), known.process) AS process,
  COALESCE(extract_arg(arg_set_id, 'debug.cgroup'), known.cgroup) AS cgroup,
  op,
  COALESCE(
    extract_arg(arg_set_id, 'debug.datasync'),
    iif(
      derives
      AND fs IS NOT NULL
      AND op IN ('fsync', 'fdatasync'),
      op = 'fdatasync',
      NULL
    )
  ) AS datasync,
  extract_arg(arg_set_id, 'debug.path') AS path,
  extract_arg(arg_set_id, 'debug.container_path') AS container_path,
  COALESCE(
    extract_arg(arg_set_id, 'debug.dev'),
    iif(may_start, known_dev, NULL)
  ) AS dev,
  extract_arg(arg_set_id, 'debug.ino') AS ino,
  fs, id,
  COALESCE(extract_arg(arg_set_id, 'debug.ret'), usual_ret) AS ret,
  syscall_ns,
  COALESCE(
    extract_arg(arg_set_id, 'debug.writeback_ns'),
    iif(
      may_start
      AND may_end,
      COALESCE(complete - submit, iif(bios = 0, 0, NULL)),
      NULL
    )
  ) AS writeback_ns,
  before_submit_ns, after_complete_ns, journal_ns, flush_ns,
  COALESCE(
    extract_arg(arg_set_id, 'debug.other_ns'),
    -- Its name before schema version 3.
    extract_arg(arg_set_id, 'debug.residue_ns'),
    iif(
      may_start
      AND may_end
      AND journal_ns = 0
      AND flush_ns = 0,
      CASE
        WHEN bios = 0 THEN dur
        WHEN before_submit_ns >= 0
        AND after_complete_ns >= 0 THEN before_submit_ns + after_complete_ns
      END,
      NULL
    )
  ) AS other_ns,
  extract_arg(arg_set_id, 'debug.cpu_wait_ns') AS cpu_wait_ns,
  COALESCE(
    extract_arg(arg_set_id, 'debug.bytes'),
    sum_bytes,
    iif(derives AND fs IS NOT NULL AND sum_bios IS NULL, 0, NULL)
  ) AS bytes,
  COALESCE(
    extract_arg(arg_set_id, 'debug.folios'),
    sum_folios,
    iif(
      derives
      AND fs IS NOT NULL
      AND id IS NOT NULL
      AND sum_bios IS NULL,
      0, NULL
    )
  ) AS folios,
  bios,
  COALESCE(
    extract_arg(arg_set_id, 'debug.ranges'),
    sum_ranges,
    iif(
      derives
      AND fs IS NOT NULL
      AND id IS NOT NULL
      AND sum_bios IS NULL,
      0, NULL
    )
  ) AS ranges,
  COALESCE(extract_arg(arg_set_id, 'debug.first_offset'), low) AS first_offset,
  COALESCE(extract_arg(arg_set_id, 'debug.last_offset'), high) AS last_offset,
  stack,
  COALESCE(
    extract_arg(arg_set_id, 'debug.confidence'),
    iif(derives, 'exact', NULL)
  ) AS confidence,
  incomplete, sync_id,
  iif(incomplete = 'start' OR call_only, NULL, ts) AS start_ns,
  COALESCE(said_call, sync_id) AS call_sync_id,
  '' AS run
FROM timed
LEFT JOIN _syncline_process AS known ON timed.derives AND known.pid = timed.pid
ORDER BY ts_ns, sync_id;

-- Bios and calls name their request by sync_id, and the table is ordered by
-- time.
CREATE OR REPLACE PERFETTO INDEX _syncline_sync_id ON syncline_sync(sync_id);
