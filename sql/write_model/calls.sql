-- Calls that write or sync, or say which file a descriptor is.
--
-- `events` is a low-level log of strace.
--
-- Columns:
--   ts_ns       time   Start of the call, or time of its return.
--   tid         id     Its thread.
--   pid         id     Its process. Null if unknown.
--   event       text   The call; NAME_exit at the return of a sync call.
--   args        text   Its arguments as printed. Null at a return.
--   path        text   The file that it opens or syncs.
--   ret         count  What it returned. Null if unknown.
--   dur_ns      ns     How long it took. Null if unknown.
--   unfinished  count  1 for the first part of a call that has two parts.
--   resumed     count  1 for the second part.
SELECT
  ts_ns,
  tid,
  pid,
  event,
  args,
  path,
  ret,
  dur_ns,
  unfinished,
  resumed
FROM events
WHERE
  event IN (
    'write', 'pwrite64', 'writev', 'pwritev', 'pwritev2', 'write_exit',
    'pwrite64_exit', 'writev_exit', 'pwritev_exit', 'pwritev2_exit', 'fsync',
    'fdatasync', 'fsync_exit', 'fdatasync_exit', 'open', 'openat', 'openat2',
    'creat', 'close', 'lseek', 'dup', 'dup2', 'dup3', 'fcntl', 'clone',
    'clone3', 'fork', 'vfork'
  );
