-- What syncs waited for beside their data: commits of the journal, and cache
-- flushes. Only recordings of a patched kernel's ring buffer tell it.

-- Waits of sync requests, one row each, in the order of time.
CREATE OR REPLACE PERFETTO TABLE syncline_wait (
  -- The request whose thread it is.
  sync_id LONG,
  -- 1, 2, 3... in the request, in the order of their starts.
  number LONG,
  -- `commit wait`: until another thread has committed the transaction.
  -- `commit`: it commits itself. `fast commit`, `fast commit wait`: the same of
  -- ext4's fast commits. `flush`: a cache flush of a device. One may lie in
  -- another.
  wait STRING,
  -- Its start.
  ts_ns TIMESTAMP,
  -- To its end.
  dur_ns DURATION,
  -- Of the journal (`tid` of jbd2, the sequence of xfs' committed item list,
  -- the checkpoint's version of f2fs). Null where it is not told.
  transaction_id LONG,
  -- Always '' here: a trace holds one run. Joins over several runs need it.
  run STRING
) AS
SELECT
  extract_arg(arg_set_id, 'debug.sync_id') AS sync_id,
  extract_arg(arg_set_id, 'debug.number') AS number,
  name AS wait,
  -- A slice may be a piece of it, which ends where a phase does.
  extract_arg(arg_set_id, 'debug.ts_ns') AS ts_ns,
  extract_arg(arg_set_id, 'debug.dur_ns') AS dur_ns,
  extract_arg(arg_set_id, 'debug.transaction_id') AS transaction_id,
  '' AS run
FROM slice
WHERE
  category = 'syncline.wait'
GROUP BY
  1,
  2
ORDER BY
  ts_ns,
  sync_id,
  number;
