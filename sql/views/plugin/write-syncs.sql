-- Write syncs: the requests for whose work a wait of a write waited, those with
-- the longest common time first. The rule is that of the report slow-writes.
-- `others` is the number of all of them.
WITH
  of_work AS (
    -- The request of the thread that held the lock.
    SELECT sync.sync_id
    FROM syncline_write_wait AS own
    JOIN syncline_sync AS sync
      ON sync.tid = own.holder_tid
      AND sync.ts_ns <= own.ts_ns
      AND sync.ts_ns + sync.dur_ns > own.ts_ns
    WHERE own.wait_id = $wait_id AND own.wait = 'inode lock'
    UNION
    -- Requests of the file whose page cache is under writeback.
    SELECT sync.sync_id
    FROM syncline_write_wait AS own
    JOIN syncline_sync AS sync
      ON sync.dev = own.dev
      AND sync.ino = own.ino
      AND sync.ts_ns <= own.ts_ns
      AND sync.ts_ns + sync.dur_ns > own.ts_ns
    WHERE own.wait_id = $wait_id AND own.wait = 'page writeback'
    UNION
    -- Requests that wait for the same commit.
    SELECT wait.sync_id
    FROM syncline_write_wait AS own
    JOIN syncline_journal AS journal
      ON journal.dev = own.dev
      AND journal.ts_ns <= own.ts_ns
      AND journal.ts_ns + journal.dur_ns > own.ts_ns
    JOIN syncline_wait AS wait ON wait.commit_id = journal.commit_id
    WHERE
      own.wait_id = $wait_id
      AND own.wait IN ('journal handle', 'journal buffer')
  )
SELECT
  sync.sync_id, sync.op, sync.path, sync.comm, sync.tid, sync.dur_ns,
  MAX(
    MIN(sync.ts_ns + sync.dur_ns, own.ts_ns + own.dur_ns)
    - MAX(sync.ts_ns, own.ts_ns),
    0
  ) AS common_ns,
  found.slice_id,
  COUNT(*) OVER () AS others
FROM of_work
JOIN syncline_sync AS sync ON sync.sync_id = of_work.sync_id
JOIN syncline_write_wait AS own ON own.wait_id = $wait_id
LEFT JOIN _syncline_plugin_slice AS found
  ON found.sync_id = sync.sync_id
  AND NOT found.is_bio
ORDER BY common_ns DESC, sync.sync_id
LIMIT 8;
