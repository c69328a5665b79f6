-- Operations on files that are no syncs.

-- Operations on files, one row each.
CREATE OR REPLACE PERFETTO TABLE syncline_file_op (
  -- Key of the operation: 1, 2, 3... The operations of a thread are in the
  -- order in which it made them.
  op_id LONG,
  -- When the call began. Its return, less its duration, if the begin is
  -- missing.
  ts_ns TIMESTAMP,
  -- Duration of the call. Null for `exit`, for a `close` of `record --files`,
  -- if an end of the call is missing, and if the log shows no durations
  -- (`strace -T`).
  dur_ns DURATION,
  -- Thread that called. Null if unknown.
  tid LONG,
  -- Process of the thread. Null if unknown.
  pid LONG,
  -- Name of the thread. Null if unknown.
  comm STRING,
  -- What the call does: `open`, `write`, `send`, `truncate`, `allocate`, `map`,
  -- `rename`, `link`, `symlink`, `unlink`, `rmdir`, `mkdir`, `close`, `dup` or
  -- `exit`.
  op STRING,
  -- Descriptor of the file. For `open` it is the new one, and for `dup` the old
  -- one, because `ret` has the new one. Null if the call names its file by a
  -- path, if an open failed, and if it is not known.
  fd LONG,
  -- Path of the file: the old name for `rename` and `link`, the link itself for
  -- `symlink`. A socket or a pipe in the notation of `strace -y`, such as
  -- `TCP:[...]`. Null if it is not known, as for a descriptor from before the
  -- recording, and for `exit`.
  path STRING,
  -- New name of the file for `rename` and `link`, and the text of the link for
  -- `symlink`. Null for the other operations, and if it is not known.
  to_path STRING,
  -- Flags of the call as strace prints them, such as `O_WRONLY|O_CREAT`. A
  -- `creat` has those that it implies; `map` has protection and flags of the
  -- mapping; `exit` has the signal that killed the thread, such as `SIGKILL`.
  -- Null if the call has none.
  flags STRING,
  -- Whether the call made a new file, folder or link. Null if it is not known,
  -- as for O_CREAT without O_EXCL, and for operations that make none.
  created BOOL,
  -- Where in the file the call writes or allocates, or where a mapping begins;
  -- the new size for `truncate`. Null for a write at the position of the
  -- descriptor, and for the other operations.
  offset_bytes LONG,
  -- What was written or sent, as the call returned it, or what was allocated or
  -- mapped. Null if the call failed or has not returned, and for the other
  -- operations.
  bytes LONG,
  -- What the call returned, or a negative errno. Null if it did not return, as
  -- `exit` never does, if the return is missing, and for a `close` of `record
  -- --files`.
  ret LONG,
  -- User stack of the call, innermost frame last, as in `syncline_call`. Null
  -- if it is not recorded (`strace -k`).
  stack STRING,
  -- Confidence in the paths: `exact` if the call itself shows them, `inferred`
  -- if they follow from earlier calls (an open, a change of the working
  -- directory), and `unknown` if the file is not known.
  confidence STRING,
  -- What is missing of the call: `start` or `end`. A call that `exit` or a
  -- signal has cut off has no end either. Null if nothing is missing, and for
  -- `exit` and a `close` of `record --files`, which have one event.
  incomplete STRING,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
SELECT
  extract_arg(arg_set_id, 'debug.op_id') AS op_id,
  ts AS ts_ns,
  -- The slice of an operation with an unknown end has duration 0.
  iif(extract_arg(arg_set_id, 'debug.open') IS NULL, dur, NULL) AS dur_ns,
  extract_arg(arg_set_id, 'debug.tid') AS tid,
  extract_arg(arg_set_id, 'debug.pid') AS pid,
  extract_arg(arg_set_id, 'debug.comm') AS comm,
  extract_arg(arg_set_id, 'debug.op') AS op,
  extract_arg(arg_set_id, 'debug.fd') AS fd,
  extract_arg(arg_set_id, 'debug.path') AS path,
  extract_arg(arg_set_id, 'debug.to_path') AS to_path,
  extract_arg(arg_set_id, 'debug.flags') AS flags,
  extract_arg(arg_set_id, 'debug.created') AS created,
  extract_arg(arg_set_id, 'debug.offset_bytes') AS offset_bytes,
  extract_arg(arg_set_id, 'debug.bytes') AS bytes,
  extract_arg(arg_set_id, 'debug.ret') AS ret,
  extract_arg(arg_set_id, 'debug.stack') AS stack,
  extract_arg(arg_set_id, 'debug.confidence') AS confidence,
  extract_arg(arg_set_id, 'debug.incomplete') AS incomplete,
  '' AS run
FROM slice
WHERE category = 'syncline.file_op'
ORDER BY op_id;
