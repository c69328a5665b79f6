-- Syncs as a person counts them: a call with all its requests.
--
-- sync() makes a request for each file system, msync() one for each file. What
-- a person counts and waits for is the call.
--
-- The subquery is sync_calls!() of sql/macros/, written out by `python -m
-- tools.columns`.

INCLUDE PERFETTO MODULE dev.syncline.sync;

-- Syncs, one row each: a sync call with all its requests, or a request without
-- a recorded call.
CREATE OR REPLACE PERFETTO TABLE syncline_sync_call (
  -- Key of the sync: the sync_id of its first request that is not filtered out.
  sync_id LONG,
  -- The call_sync_id of its requests in syncline_sync.
  call_sync_id LONG,
  -- Entry of its call. Without one, `sync_start` of the request.
  ts_ns TIMESTAMP,
  -- Duration of the sync. Of one request, that of the request; of several, from
  -- the entry of the call to its exit, or to the end of the last request in a
  -- log without exits of such calls. Null if that is not known.
  dur_ns DURATION,
  -- Thread id. Null if the source only has processes.
  tid LONG,
  -- Process id. Null if the source only has threads.
  pid LONG,
  -- Name of the thread. Null if unknown.
  comm STRING,
  -- Name of the process. Null if unknown.
  process STRING,
  -- Control group of the process. Null if unknown.
  cgroup STRING,
  -- Name of the call. Null if it has none, or if that is not known.
  op STRING,
  -- Path of the file. Null if unknown, and if the requests are of several
  -- files.
  path STRING,
  -- Path of the file in the container of the thread. Null like path, and
  -- outside of containers.
  container_path STRING,
  -- Device, as `major,minor`. Null if unknown, and if the requests are of
  -- several devices.
  dev STRING,
  -- Inode number of the file. Null if unknown, and if the requests are of
  -- several files.
  ino LONG,
  -- What it syncs, if that is not one file: `whole file systems` (sync), `a
  -- whole file system` (syncfs) or `several files`. Null for one file, and if
  -- it is not known.
  what STRING,
  -- 0, or the negative errno with which a request ended. Null if that of a
  -- request is not known, unless another one failed.
  ret LONG,
  -- Syscall latency: from the entry of the call to its exit. Null without a
  -- call, and if it is not known.
  syscall_ns DURATION,
  -- From the first bio_submit to the last bio_complete of all requests. 0
  -- without a bio. Null if that of a request is not known, and for a sync of
  -- whole file systems, unless ids say what flusher threads wrote for it.
  writeback_ns DURATION,
  -- Time in waits for the journal, of all requests. Null if that of a request
  -- is not known.
  journal_ns LONG,
  -- Time in cache flushes, of all requests. Null if that of a request is not
  -- known.
  flush_ns LONG,
  -- Total size of what its requests wrote. Null if that of a request is not
  -- known. Null too for a sync of whole file systems that has none itself,
  -- unless ids say what flusher threads wrote for it.
  bytes LONG,
  -- Number of separate ranges of file offsets, of all requests. Null like
  -- bytes.
  ranges LONG,
  -- Number of bios of all requests. Null like bytes.
  bios LONG,
  -- User stack of the call. Null without a stack.
  stack STRING,
  -- That of the least sure request.
  confidence STRING,
  -- What is missing of a request: `start`, else `end` (also of the call, if it
  -- has several requests), else `call`, else `bio`. Null if all are complete.
  incomplete STRING,
  -- First `sync_start`. Null if none is known.
  start_ns TIMESTAMP,
  -- Number of its requests.
  requests LONG,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
SELECT
  sync_id, call_sync_id, ts_ns, dur_ns, tid, pid, comm, process, cgroup, op,
  path, container_path, dev, ino, what, ret, syscall_ns, writeback_ns,
  journal_ns, flush_ns, bytes, ranges, bios, stack, confidence, incomplete,
  start_ns, requests, run
FROM (
  WITH
    several AS (
      SELECT DISTINCT run, call_sync_id
      FROM syncline_sync
      WHERE call_sync_id <> sync_id
    ),
    part AS (
      SELECT
        run, call_sync_id,
        MIN(sync_id) AS sync_id,
        COUNT(sync_id) AS requests,
        MIN(ts_ns) AS ts_ns,
        MAX(ts_ns + dur_ns) AS end_ns,
        COUNT(dur_ns) AS ends,
        MAX(op) AS op,
        MAX(syscall_ns) AS call_ns,
        MAX(CASE WHEN op IS NOT NULL THEN dur_ns END) AS own_ns,
        MIN(tid) AS tid,
        MIN(pid) AS pid,
        MIN(comm) AS comm,
        MIN(process) AS process,
        MIN(cgroup) AS cgroup,
        COUNT(path) AS paths,
        MIN(path) AS path,
        MAX(path) AS last_path,
        MIN(container_path) AS container_path,
        COUNT(dev) AS devs,
        MIN(dev) AS dev,
        MAX(dev) AS last_dev,
        COUNT(ino) AS inos,
        MIN(ino) AS ino,
        MAX(ino) AS last_ino,
        COUNT(id) AS ids,
        COUNT(ret) AS rets,
        MIN(ret) AS ret,
        COUNT(writeback_ns) AS writebacks,
        CAST(SUM(writeback_ns) AS BIGINT) AS writeback_ns,
        COUNT(CASE WHEN bios > 0 THEN 1 END) AS with_bios,
        COUNT(before_submit_ns + after_complete_ns) AS bounded,
        MAX(ts_ns + dur_ns - after_complete_ns) AS complete_ns,
        MIN(start_ns + before_submit_ns) AS submit_ns,
        COUNT(journal_ns) AS journals,
        CAST(SUM(journal_ns) AS BIGINT) AS journal_ns,
        COUNT(flush_ns) AS flushes,
        CAST(SUM(flush_ns) AS BIGINT) AS flush_ns,
        COUNT(bytes) AS sizes,
        CAST(SUM(bytes) AS BIGINT) AS bytes,
        COUNT(ranges) AS range_counts,
        CAST(SUM(ranges) AS BIGINT) AS ranges,
        COUNT(bios) AS bio_counts,
        CAST(SUM(bios) AS BIGINT) AS bios,
        MAX(stack) AS stack,
        MAX(confidence) AS confidence,
        MIN(
          CASE incomplete
            WHEN 'start' THEN 0
            WHEN 'end' THEN 1
            WHEN 'call' THEN 2
            WHEN 'bio' THEN 3
          END
        ) AS lack,
        MIN(start_ns) AS start_ns
      FROM syncline_sync
      JOIN several USING (run, call_sync_id)
      GROUP BY run, call_sync_id
    ),
    joined AS (
      SELECT
        *,
        COALESCE(paths = requests AND path = last_path, FALSE) AS is_one_path,
        COALESCE(devs = requests AND dev = last_dev, FALSE) AS is_one_dev,
        COALESCE(inos = requests AND ino = last_ino, FALSE) AS is_one_inode,
        COALESCE(call_ns > own_ns, FALSE) AS has_exit,
        call_ns IS NULL
        AND own_ns IS NOT NULL AS is_exit_lost,
        CASE
          WHEN ids = requests THEN 0
          WHEN sync_id <> call_sync_id THEN NULL
          WHEN op IN ('sync', 'syncfs') THEN NULL
          ELSE 0
        END AS if_none
      FROM part
    ),
    single AS (
      SELECT
        sync.run, sync.sync_id, sync.call_sync_id, sync.ts_ns, sync.dur_ns,
        sync.start_ns, sync.tid, sync.pid, sync.comm, sync.process, sync.cgroup,
        sync.op, sync.path, sync.container_path, sync.dev, sync.ino, sync.ret,
        sync.syscall_ns, sync.writeback_ns, sync.journal_ns, sync.flush_ns,
        sync.bytes, sync.ranges, sync.bios, sync.stack, sync.confidence,
        sync.incomplete,
        CASE
          WHEN id IS NOT NULL THEN 0
          WHEN op IN ('sync', 'syncfs') THEN NULL
          ELSE 0
        END AS if_none
      FROM syncline_sync AS sync
      LEFT JOIN several
        ON (several.run IS NOT DISTINCT FROM sync.run
        AND several.call_sync_id IS NOT DISTINCT FROM sync.call_sync_id)
      WHERE several.run IS NULL
    )
  SELECT
    sync_id, call_sync_id, ts_ns, dur_ns, tid, pid, comm, process, cgroup, op,
    path, container_path, dev, ino,
    CASE
      WHEN path IS NULL
      AND ino IS NULL
      AND op = 'sync' THEN 'whole file systems'
      WHEN path IS NULL
      AND ino IS NULL
      AND op = 'syncfs' THEN 'a whole file system'
    END AS what,
    ret, syscall_ns,
    CASE WHEN if_none = 0 THEN writeback_ns END AS writeback_ns,
    journal_ns, flush_ns,
    CASE WHEN bytes > 0 OR if_none = 0 THEN bytes END AS bytes,
    CASE WHEN if_none = 0 THEN ranges END AS ranges,
    CASE WHEN bios > 0 OR if_none = 0 THEN bios END AS bios,
    stack, confidence, incomplete, start_ns,
    CAST(1 AS BIGINT) AS requests,
    run
  FROM single
  UNION ALL
  SELECT
    sync_id, call_sync_id, ts_ns,
    CASE
      WHEN has_exit THEN call_ns
      WHEN is_exit_lost THEN NULL
      WHEN ends = requests THEN end_ns - ts_ns
    END AS dur_ns,
    tid, pid, comm, process, cgroup, op,
    CASE WHEN is_one_path THEN path END AS path,
    CASE WHEN is_one_path THEN container_path END AS container_path,
    CASE WHEN is_one_dev THEN dev END AS dev,
    CASE WHEN is_one_inode AND is_one_dev THEN ino END AS ino,
    CASE
      WHEN is_one_path
      OR (is_one_inode AND is_one_dev) THEN NULL
      WHEN op = 'sync' THEN 'whole file systems'
      WHEN op = 'syncfs' THEN 'a whole file system'
      WHEN paths = requests
      OR inos = requests THEN 'several files'
    END AS what,
    CASE WHEN ret < 0 OR rets = requests THEN ret END AS ret,
    CASE
      WHEN has_exit THEN call_ns
      WHEN call_ns IS NOT NULL
      AND ends = requests THEN end_ns - ts_ns
    END AS syscall_ns,
    CASE
      WHEN writebacks < requests
      OR if_none IS NULL THEN NULL
      WHEN with_bios <= 1 THEN writeback_ns
      WHEN bounded = with_bios THEN complete_ns - submit_ns
    END AS writeback_ns,
    CASE WHEN journals = requests THEN journal_ns END AS journal_ns,
    CASE WHEN flushes = requests THEN flush_ns END AS flush_ns,
    CASE
      WHEN sizes = requests THEN COALESCE(NULLIF(bytes, 0), if_none)
    END AS bytes,
    CASE WHEN range_counts = requests AND if_none = 0 THEN ranges END AS ranges,
    CASE
      WHEN bio_counts = requests THEN COALESCE(NULLIF(bios, 0), if_none)
    END AS bios,
    stack, confidence,
    CASE
      WHEN lack = 0 THEN 'start'
      WHEN lack = 1
      OR is_exit_lost THEN 'end'
      WHEN lack = 2 THEN 'call'
      WHEN lack = 3 THEN 'bio'
    END AS incomplete,
    start_ns, requests, run
  FROM joined
)
ORDER BY ts_ns, sync_id;
