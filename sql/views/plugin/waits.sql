-- Waits: those of a request, each with the commit that it waits for, and the
-- number of other requests that wait for the same one.
SELECT
  own.wait, own.ts_ns, own.dur_ns, own.transaction_id, journal.commit_id,
  journal.ts_ns AS commit_ts_ns,
  journal.dur_ns AS commit_dur_ns,
  journal.comm AS journal,
  (
    SELECT COUNT(DISTINCT other.sync_id)
    FROM syncline_wait AS other
    JOIN syncline_sync AS other_sync ON other_sync.sync_id = other.sync_id
    WHERE
      other.transaction_id = own.transaction_id
      AND other.sync_id <> own.sync_id
      AND other_sync.dev IS sync.dev
  ) AS others
FROM syncline_wait AS own
JOIN syncline_sync AS sync ON sync.sync_id = own.sync_id
LEFT JOIN syncline_journal AS journal ON journal.commit_id = own.commit_id
WHERE own.sync_id = $sync_id
ORDER BY own.ts_ns, own.number;
