-- Syncs as a person counts them: a call with all its requests. They are the
-- rows of syncline_sync_call.
--
-- sync() makes a request for each file system, msync() one for each file. What
-- a person counts and waits for is the call.
--
-- Result: a row a call, or a request without a recorded call, with the columns
--   of syncline_sync_call. What of several requests is not the same in all, or
--   not known of all, is null.
--
-- Example: SELECT COUNT(*) FROM sync_calls!()
CREATE PERFETTO MACRO sync_calls()
RETURNS TableOrSubquery
AS
(
  WITH
    -- Calls with several requests: few, but for programs that call sync().
    _several AS (
      SELECT DISTINCT run, call_sync_id
      FROM syncline_sync
      WHERE call_sync_id <> sync_id
    ),
    _part AS (
      SELECT
        run, call_sync_id,
        MIN(sync_id) AS sync_id,
        COUNT(sync_id) AS requests,
        MIN(ts_ns) AS ts_ns,
        MAX(ts_ns + dur_ns) AS end_ns,
        COUNT(dur_ns) AS ends,
        MAX(op) AS op,
        MAX(syscall_ns) AS call_ns,
        -- The length of the request that has the call.
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
        -- In the order of the alphabet, the least sure one is the last.
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
      JOIN _several USING (run, call_sync_id)
      GROUP BY run, call_sync_id
    ),
    _joined AS (
      SELECT
        *,
        COALESCE(paths = requests AND path = last_path, FALSE) AS is_one_path,
        COALESCE(devs = requests AND dev = last_dev, FALSE) AS is_one_dev,
        COALESCE(inos = requests AND ino = last_ino, FALSE) AS is_one_inode,
        -- The exit of the call is recorded. Without exits, the syscall latency
        -- ends with the first request.
        COALESCE(call_ns > own_ns, FALSE) AS has_exit,
        -- The exit is lost.
        call_ns IS NULL
        AND own_ns IS NOT NULL AS is_exit_lost,
        -- What was written for it if no bio of it is known: nothing. Null if
        -- that is unknown: without ids, what flusher threads write for sync()
        -- is not found. Nor is known which call it is if a filter has left out
        -- its first request.
        CASE
          WHEN ids = requests THEN 0
          WHEN sync_id <> call_sync_id THEN NULL
          WHEN op IN ('sync', 'syncfs') THEN NULL
          ELSE 0
        END AS if_none
      FROM _part
    ),
    _single AS (
      SELECT
        of!(sync, (run, sync_id, call_sync_id, ts_ns, dur_ns, start_ns)),
        of!(sync, (tid, pid, comm, process, cgroup, op)),
        of!(sync, (path, container_path, dev, ino, ret, syscall_ns)),
        of!(sync, (writeback_ns, journal_ns, flush_ns, bytes, ranges, bios)),
        of!(sync, (stack, confidence, incomplete)),
        -- What was written for it if no bio of it is known, as above.
        CASE
          WHEN id IS NOT NULL THEN 0
          WHEN op IN ('sync', 'syncfs') THEN NULL
          ELSE 0
        END AS if_none
      FROM syncline_sync AS sync
      LEFT JOIN _several ON same!(_several, sync, (run, call_sync_id))
      WHERE _several.run IS NULL
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
  FROM _single
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
  FROM _joined
);
