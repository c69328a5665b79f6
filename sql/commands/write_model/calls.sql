-- Calls that write or sync, that cut, delete or rename a file, or say which
-- file a descriptor is, and the ends of threads, in the order of the log.
--
-- `events` is a low-level log of strace.
--
-- In the log, the return of a call has the fields of its entry, too.
--
-- Columns:
--   part        text   call: all of it is known. entry: its return is
--                      another row, if it is in the log. return: its entry is
--                      not in the log.
--   has_entry   count  1 for a call that has an entry among the rows.
--   start_ns    time   Start of the call; for a return, its own time.
--   tid         id     Its thread.
--   pid         id     Its process. Null if unknown.
--   event       text   The call.
--   args        text   Its arguments as printed; for the end of a thread, how
--                      it ended.
--   path        text   The file that it opens.
--   ret         count  What it returned. Null if unknown.
--   dur_ns      ns     How long it took, as printed, or else until its return.
--                      Null if unknown.
WITH
  parts AS (
    SELECT
      *,
      rowid AS line,
      replace(event, '_exit', '') AS call,
      coalesce(resumed, 0) = 1 OR event LIKE '%\_exit' ESCAPE '\' AS is_return,
      CASE
        WHEN NOT coalesce(untimed, FALSE) THEN ts_ns - entry_ns
      END AS until_return_ns
    FROM events
  )
SELECT
  CASE
    WHEN is_return AND entry_ns IS NULL THEN 'return'
    WHEN is_return THEN 'call'
    WHEN
      unfinished = 1
      OR ret IS NULL
      AND call IN (
        'write', 'pwrite64', 'writev', 'pwritev', 'pwritev2', 'fsync',
        'fdatasync', 'sync', 'syncfs'
      )
      THEN 'entry'
    ELSE 'call'
  END AS part,
  CASE WHEN entry_ns IS NULL THEN 0 ELSE 1 END AS has_entry,
  coalesce(entry_ns, ts_ns) AS start_ns,
  tid,
  pid,
  call AS event,
  coalesce(args, text) AS args,
  path,
  ret,
  coalesce(dur_ns, until_return_ns) AS dur_ns
FROM parts
WHERE
  call IN (
    'write', 'pwrite64', 'writev', 'pwritev', 'pwritev2', 'fsync', 'fdatasync',
    'open', 'openat', 'openat2', 'creat', 'close', 'lseek', 'dup', 'dup2',
    'dup3', 'fcntl', 'clone', 'clone3', 'fork', 'vfork',
    'sync', 'syncfs', 'unlink', 'unlinkat', 'truncate', 'ftruncate',
    'rename', 'renameat', 'renameat2', 'link', 'linkat', 'close_range',
    'execve', 'execveat', 'chdir', 'fchdir', 'getcwd', 'ended',
    'io_submit', 'io_uring_enter'
  )
  -- Only the ioctls that decide whether exec closes a file.
  OR (
    call = 'ioctl'
    AND args LIKE '%CLEX%'
  )
ORDER BY
  line;
