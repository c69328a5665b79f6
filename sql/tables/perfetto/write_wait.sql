-- Waits of threads that write to files and are in no sync.

-- Waits of writes, one row each, in the order of time.
CREATE OR REPLACE PERFETTO TABLE syncline_write_wait (
  -- Key of the wait: 1, 2, 3... The waits of a thread are in the order of time.
  wait_id LONG,
  -- Start of the wait.
  ts_ns TIMESTAMP,
  -- Duration of the wait, at least 1 ms; for `page read`, any.
  dur_ns DURATION,
  -- Thread that waits. Null if unknown.
  tid LONG,
  -- Process of the thread. Null if unknown.
  pid LONG,
  -- Name of the thread. Null if unknown.
  comm STRING,
  -- What it waits for: `throttling`, `inode lock`, `journal handle`, `journal
  -- space`, `journal buffer`, `page writeback` or `page read`.
  wait STRING,
  -- Device of the file or of the file system, as `major,minor`. While a thread
  -- is throttled, the disk that the file system is on. Null if it is not
  -- recorded.
  dev STRING,
  -- Inode number of the file whose lock is held, or whose page cache is under
  -- writeback or is read. Null for the other kinds, and if it is not recorded.
  ino LONG,
  -- Path of that inode, from a sync of the file or from the recorder's table of
  -- files. Null if it is not known, or if the number may have been that of
  -- several files.
  path STRING,
  -- What a throttled thread had made dirty since the kernel last checked how
  -- much is dirty, in whole pages. Null for the other kinds, and for further
  -- pauses of one check.
  bytes LONG,
  -- Transaction of jbd2 whose commit the thread waits for: as in
  -- `syncline_wait`. Null if it is not recorded.
  transaction_id LONG,
  -- Thread that held the lock when the wait began. Null for the other kinds, if
  -- readers held the lock, and if it is not recorded.
  holder_tid LONG,
  -- Name of that thread. Null like holder_tid.
  holder_comm STRING,
  -- The bio in `syncline_bio` by which the thread reads the page that it
  -- changes a part of. Null for the other kinds, and if the recording has no
  -- reads or another thread reads the page.
  bio_id LONG,
  -- `exact`, or `inferred`: the duration is the length of the pause that the
  -- kernel chose, or the bio that reads the page is not known.
  confidence STRING,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
SELECT
  extract_arg(arg_set_id, 'debug.wait_id') AS wait_id,
  ts AS ts_ns,
  dur AS dur_ns,
  extract_arg(arg_set_id, 'debug.tid') AS tid,
  extract_arg(arg_set_id, 'debug.pid') AS pid,
  extract_arg(arg_set_id, 'debug.comm') AS comm,
  extract_arg(arg_set_id, 'debug.wait') AS wait,
  extract_arg(arg_set_id, 'debug.dev') AS dev,
  extract_arg(arg_set_id, 'debug.ino') AS ino,
  extract_arg(arg_set_id, 'debug.path') AS path,
  extract_arg(arg_set_id, 'debug.bytes') AS bytes,
  extract_arg(arg_set_id, 'debug.transaction_id') AS transaction_id,
  extract_arg(arg_set_id, 'debug.holder_tid') AS holder_tid,
  extract_arg(arg_set_id, 'debug.holder_comm') AS holder_comm,
  extract_arg(arg_set_id, 'debug.bio_id') AS bio_id,
  extract_arg(arg_set_id, 'debug.confidence') AS confidence,
  '' AS run
FROM slice
WHERE category = 'syncline.write_wait'
ORDER BY ts_ns, wait_id;
