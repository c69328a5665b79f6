-- Commits of a journal by its own thread: jbd2, and on a patched kernel others
-- too. They belong to no request.

-- Commits of a journal, one row each, in the order of time.
CREATE OR REPLACE PERFETTO TABLE syncline_journal (
  -- Number of the commit: 1, 2, 3... in the order of the starts.
  commit_id LONG,
  -- `commit`: by the thread of the journal. `fast commit`: a fast commit of
  -- ext4, by the thread of a sync.
  kind STRING,
  -- Start of the commit; its end if the start is not in the log.
  ts_ns TIMESTAMP,
  -- Duration of the commit. Null if its start or its end is not in the log.
  dur_ns DURATION,
  -- Thread that makes the commit: that of the journal, or that of a sync. Null
  -- if the log does not record it.
  tid LONG,
  -- Process of the thread. Null if the log does not record it.
  pid LONG,
  -- Name of the thread, such as `jbd2/vda1-8`. Null if the log does not record
  -- it.
  comm STRING,
  -- Device of the file system, as `major,minor`. Null if the event does not
  -- record it, as on a patched kernel.
  dev STRING,
  -- Transaction of the journal: as in `syncline_wait`. Null if it is not
  -- recorded.
  transaction_id LONG,
  -- What the commit was started for: `sync` (a request), `timer` (the
  -- transaction had reached the age at which the journal commits it), `space`
  -- (a thread needed room in the journal), or `other` (another thread, such as
  -- one that freezes the file system). Null if the log does not show it.
  started_by STRING,
  -- The request that started it. Null if none did, and if it is not known.
  sync_id LONG,
  -- Number of requests that waited for it: those with a recorded wait in
  -- `syncline_wait` that has this commit_id. Null if the log records no waits.
  -- Inferred waits do not count.
  syncs LONG,
  -- How a fast commit ended: `ok`; `skipped` if another commit had made the
  -- same durable; `ineligible` or `failed` if a full commit took its place.
  -- Null for other commits, and if it is not recorded.
  status STRING,
  -- Why a fast commit was not eligible, in the kernel's words: `rename dir`,
  -- `xattr`, ... Null for other commits, and if it is not recorded.
  reason STRING,
  -- Part of the commit in which jbd2 waits until the open handles of the
  -- transaction are closed. Null if the step after it is not recorded.
  locking_ns DURATION,
  -- Part of the commit in which jbd2 writes the data of the transaction's
  -- files, and waits for it. Null if its begin, or the step after it, is not
  -- recorded.
  flushing_ns DURATION,
  -- Part of the commit in which jbd2 writes the transaction to the journal, and
  -- waits for it. Null if its begin, or the end of the commit, is not recorded.
  logging_ns DURATION,
  -- `start` or `end`, if that event is not in the log. Null if both are.
  incomplete STRING,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
SELECT
  extract_arg(arg_set_id, 'debug.commit_id') AS commit_id,
  -- Writers that did not name the kind wrote full commits only.
  coalesce(extract_arg(arg_set_id, 'debug.kind'), 'commit') AS kind,
  ts AS ts_ns,
  -- The slice of an incomplete commit has duration 0.
  iif(extract_arg(arg_set_id, 'debug.incomplete') IS NULL, dur, NULL) AS dur_ns,
  extract_arg(arg_set_id, 'debug.tid') AS tid,
  extract_arg(arg_set_id, 'debug.pid') AS pid,
  extract_arg(arg_set_id, 'debug.comm') AS comm,
  extract_arg(arg_set_id, 'debug.dev') AS dev,
  extract_arg(arg_set_id, 'debug.transaction_id') AS transaction_id,
  extract_arg(arg_set_id, 'debug.started_by') AS started_by,
  extract_arg(arg_set_id, 'debug.sync_id') AS sync_id,
  extract_arg(arg_set_id, 'debug.syncs') AS syncs,
  extract_arg(arg_set_id, 'debug.status') AS status,
  extract_arg(arg_set_id, 'debug.reason') AS reason,
  extract_arg(arg_set_id, 'debug.locking_ns') AS locking_ns,
  extract_arg(arg_set_id, 'debug.flushing_ns') AS flushing_ns,
  extract_arg(arg_set_id, 'debug.logging_ns') AS logging_ns,
  extract_arg(arg_set_id, 'debug.incomplete') AS incomplete,
  '' AS run
FROM slice
WHERE category = 'syncline.commit'
ORDER BY ts_ns, commit_id;
