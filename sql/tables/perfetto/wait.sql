-- Waits of syncs for commits of the journal and for cache flushes. Only the
-- ring buffer of a patched kernel records them.
--
-- A slice that is not the whole wait has the times of the whole as arguments.

-- Waits of sync requests, one row each, in the order of time.
CREATE OR REPLACE PERFETTO TABLE syncline_wait (
  -- Request whose thread waits.
  sync_id LONG,
  -- Number of the wait in its request: 1, 2, 3... in the order of the starts.
  number LONG,
  -- Kind of wait: `commit wait`, `commit`, `fast commit`, `fast commit wait`,
  -- `flush` or `metadata wait`. Waits may be nested.
  wait STRING,
  -- Start of the wait.
  ts_ns TIMESTAMP,
  -- Duration of the wait.
  dur_ns DURATION,
  -- Transaction of the journal: `tid` of jbd2, the sequence number of the xfs
  -- committed item list, or the checkpoint version of f2fs. Null if it is not
  -- recorded.
  transaction_id LONG,
  -- The commit that it waits for, of `syncline_journal`. Null for other waits,
  -- and if the commit is not recorded.
  commit_id LONG,
  -- Confidence in the wait: `exact` if it is recorded, `inferred` if only the
  -- commit is.
  confidence STRING,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
SELECT
  extract_arg(arg_set_id, 'debug.sync_id') AS sync_id,
  extract_arg(arg_set_id, 'debug.number') AS number,
  name AS wait,
  COALESCE(extract_arg(arg_set_id, 'debug.ts_ns'), ts) AS ts_ns,
  COALESCE(extract_arg(arg_set_id, 'debug.dur_ns'), dur) AS dur_ns,
  extract_arg(arg_set_id, 'debug.transaction_id') AS transaction_id,
  extract_arg(arg_set_id, 'debug.commit_id') AS commit_id,
  COALESCE(extract_arg(arg_set_id, 'debug.confidence'), 'exact') AS confidence,
  '' AS run
FROM slice
WHERE category = 'syncline.wait'
GROUP BY 1, 2
ORDER BY ts_ns, sync_id, number;
