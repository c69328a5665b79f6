-- Syncs as a person counts them: a call with all its requests, one row each.
-- The columns are those of sql/tables/perfetto/sync_call.sql.

CREATE OR REPLACE VIEW syncline_sync_call AS
WITH
  -- Syncs with several requests: few, but for programs that call sync().
  several AS (
    SELECT DISTINCT run, call_sync_id AS first
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
      MAX(syscall_ns) AS said_ns,
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
      COUNT(ranges) AS n_ranges,
      CAST(SUM(ranges) AS BIGINT) AS ranges,
      COUNT(bios) AS counts,
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
    WHERE
      EXISTS (
        SELECT 1
        FROM several
        WHERE
          several.run = syncline_sync.run
          AND several.first = syncline_sync.call_sync_id
      )
    GROUP BY run, call_sync_id
  ),
  joined AS (
    SELECT
      *,
      COALESCE(paths = requests AND path = last_path, FALSE) AS is_one_path,
      COALESCE(devs = requests AND dev = last_dev, FALSE) AS is_one_dev,
      COALESCE(inos = requests AND ino = last_ino, FALSE) AS is_one_inode,
      -- The exit of the call is recorded. Without exits, the syscall latency
      -- ends with the first request.
      COALESCE(said_ns > own_ns, FALSE) AS has_exit,
      -- The exit is lost.
      said_ns IS NULL
      AND own_ns IS NOT NULL AS is_left,
      -- What flusher threads write for it is known by ids only. A filter that
      -- has left out its first request has left out which call it is, too.
      CASE
        WHEN ids = requests THEN 0
        WHEN sync_id <> call_sync_id THEN NULL
        WHEN op IN ('sync', 'syncfs') THEN NULL
        ELSE 0
      END AS own
    FROM part
  ),
  single AS (
    SELECT
      run, sync_id, call_sync_id, ts_ns, dur_ns, tid, pid, comm, process,
      cgroup, op, path, container_path, dev, ino, ret, syscall_ns, writeback_ns,
      journal_ns, flush_ns, bytes, ranges, bios, stack, confidence, incomplete,
      start_ns,
      -- What flusher threads write for it is known by ids only.
      CASE
        WHEN id IS NOT NULL THEN 0
        WHEN op IN ('sync', 'syncfs') THEN NULL
        ELSE 0
      END AS own
    FROM syncline_sync
    WHERE
      NOT EXISTS (
        SELECT 1
        FROM several
        WHERE
          several.run = syncline_sync.run
          AND several.first = syncline_sync.call_sync_id
      )
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
  CASE WHEN own = 0 THEN writeback_ns END AS writeback_ns,
  journal_ns, flush_ns,
  CASE WHEN bytes > 0 OR own = 0 THEN bytes END AS bytes,
  CASE WHEN own = 0 THEN ranges END AS ranges,
  CASE WHEN bios > 0 OR own = 0 THEN bios END AS bios,
  stack, confidence, incomplete, start_ns,
  CAST(1 AS BIGINT) AS requests,
  run
FROM single
UNION ALL
SELECT
  sync_id, call_sync_id, ts_ns,
  CASE
    WHEN has_exit THEN said_ns
    WHEN is_left THEN NULL
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
    WHEN has_exit THEN said_ns
    WHEN said_ns IS NOT NULL
    AND ends = requests THEN end_ns - ts_ns
  END AS syscall_ns,
  CASE
    WHEN writebacks < requests
    OR own IS NULL THEN NULL
    WHEN with_bios <= 1 THEN writeback_ns
    WHEN bounded = with_bios THEN complete_ns - submit_ns
  END AS writeback_ns,
  CASE WHEN journals = requests THEN journal_ns END AS journal_ns,
  CASE WHEN flushes = requests THEN flush_ns END AS flush_ns,
  CASE WHEN sizes = requests THEN COALESCE(NULLIF(bytes, 0), own) END AS bytes,
  CASE WHEN n_ranges = requests AND own = 0 THEN ranges END AS ranges,
  CASE WHEN counts = requests THEN COALESCE(NULLIF(bios, 0), own) END AS bios,
  stack, confidence,
  CASE
    WHEN lack = 0 THEN 'start'
    WHEN lack = 1
    OR is_left THEN 'end'
    WHEN lack = 2 THEN 'call'
    WHEN lack = 3 THEN 'bio'
  END AS incomplete,
  start_ns, requests, run
FROM joined;
