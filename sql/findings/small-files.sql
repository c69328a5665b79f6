-- Small files that are synced one after the other.
--
-- Evidence is a sync in a row of at least 8 by the same thread, each of another
-- file of at most 64 KiB that is synced once in the recording. The files may be
-- in several folders. A sync of a folder in between does not end the row, and a
-- sync of something else does. Threads of the same name and control group with
-- one sync each are a row too, as a script gives that starts a command for each
-- file, if each sync begins within a second after the one before has ended. A
-- group that is not recorded is the only one of the name, if that has one.
-- Left out are temporary names that end in tmp and a number (settings.tmp7), by
-- which one file is replaced again and again.
--
-- Seen: {syncs} of {of_syncs} {are} of a small file of its own, one
-- after the other: {where}.
--
-- Cost: the time in which these syncs were all that the process waited for. It
-- is the most that can be saved: the last sync, or one for all, remains.
--
-- Instead: sync the files at the same time (io_uring, or several threads), so
-- that they share commits and flushes; or write them all, then call syncfs
-- once; or keep the records in one file.
--
-- Needs: sync.path sync.bytes
--
-- Not checked: it needs the path and the bytes of each sync, which the routes
-- dynamic-events, ring-buffer and bpftrace record.
--
-- Columns:
--   sync_id   id     The sync.
--   ts_ns     time   Its start.
--   comm      text   Name of its thread.
--   path      text   Path of its file.
--   cost_ns   ns     Its duration.
--   note      prose  What was seen.
--   from_ns   time   Start of the time that it cost.
--   until_ns  time   End of that time.
--   run       text   Name of the run, if the input holds several.
WITH
  -- A file that is replaced again and again has another temporary name each
  -- time, often with a number.
  named AS (
    SELECT
      run, sync_id,
      CASE
        WHEN RTRIM(path, '0123456789') GLOB '*tmp' THEN RTRIM(
          path, '0123456789'
        )
        ELSE path
      END AS name
    FROM syncline_sync
    WHERE path IS NOT NULL
  ),
  -- Files that are synced once.
  once AS (
    SELECT run, MIN(sync_id) AS sync_id
    FROM named
    GROUP BY run, name
    HAVING COUNT(*) = 1
  ),
  request AS (
    SELECT
      sync.run AS run,
      sync.sync_id AS sync_id,
      sync.ts_ns AS ts_ns,
      sync.ts_ns + sync.dur_ns AS end_ns,
      sync.tid AS tid,
      sync.pid AS pid,
      COALESCE(sync.cgroup, alone.cgroup) AS cgroup,
      sync.comm AS comm,
      sync.path AS path,
      sync.bytes AS bytes,
      CASE
        WHEN once.sync_id IS NOT NULL
        AND sync.op IN ('fsync', 'fdatasync')
        AND sync.bytes BETWEEN 1 AND 65536
        AND sync.dur_ns IS NOT NULL THEN 1
        ELSE 0
      END AS is_small
    FROM syncline_sync AS sync
    LEFT JOIN once ON same!(once, sync, (run, sync_id))
    LEFT JOIN may_be_folder!() AS folder ON same!(folder, sync, (run, sync_id))
    LEFT JOIN only_groups!() AS alone
      ON alone.run = sync.run
      AND alone.process = COALESCE(sync.process, sync.comm, '')
    WHERE folder.sync_id IS NULL
  ),
  -- Who syncs one after the other: a thread, or a command for each file.
  by_worker AS (
    SELECT
      *,
      CASE WHEN is_single = 0 THEN tid END AS worker_tid,
      CASE WHEN is_single = 0 THEN pid END AS worker_pid,
      CASE WHEN is_single = 1 THEN comm END AS command,
      CASE WHEN is_single = 1 THEN cgroup END AS command_cgroup
    FROM (
      SELECT
        *,
        CASE
          WHEN comm IS NOT NULL
          AND COUNT(*) OVER (PARTITION BY run, tid, pid) = 1 THEN 1
          ELSE 0
        END AS is_single
      FROM request
    ) AS request
  ),
  -- The place of each sync among those of its worker, and the next one.
  placed AS (
    SELECT
      *,
      ROW_NUMBER() OVER in_order AS place,
      LEAD(ts_ns) OVER in_order AS next_ns
    FROM by_worker
    WINDOW
      in_order AS (
        PARTITION BY run, worker_tid, worker_pid, command, command_cgroup
        ORDER BY ts_ns, sync_id
      )
  ),
  -- A small file is in a row with the next sync of its thread. A command is in
  -- one with the next command if that syncs within a second.
  small AS (
    SELECT
      *,
      CASE
        WHEN is_single = 0 THEN place + 1
        WHEN next_ns - end_ns BETWEEN 0 AND 1000000000 THEN place + 1
        ELSE place
      END AS goes_on_to
    FROM placed
    WHERE is_small = 1
  ),
  counted AS (
    SELECT *, COUNT(*) OVER in_a_row AS files
    FROM islands!(
      small, place, goes_on_to,
      (run, worker_tid, worker_pid, command, command_cgroup)
    )
    WINDOW
      in_a_row AS (
        PARTITION BY
          run, worker_tid, worker_pid, command, command_cgroup, island
      )
  )
SELECT
  sync_id, ts_ns, comm, path,
  end_ns - ts_ns AS cost_ns,
  COALESCE(CAST(bytes AS TEXT) || ' bytes; ', '') || 'one of '
  || CAST(files AS TEXT)
  || ' files in a row' AS note,
  ts_ns AS from_ns,
  end_ns AS until_ns,
  run
FROM counted
WHERE files >= 8
ORDER BY cost_ns DESC, run, sync_id;
