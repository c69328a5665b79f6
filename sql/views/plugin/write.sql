-- Write: a wait of a write, its slice, and the commit of the journal that it
-- waited for: the one that ran when the wait began.
SELECT
  own.*,
  (
    SELECT slice.id
    FROM slice
    WHERE
      slice.category = 'syncline.write_wait'
      AND extract_arg(slice.arg_set_id, 'debug.wait_id') = own.wait_id
  ) AS slice_id,
  journal.comm AS journal,
  journal.dur_ns AS commit_dur_ns,
  journal.syncs AS commit_syncs
FROM syncline_write_wait AS own
LEFT JOIN syncline_journal AS journal
  ON journal.dev = own.dev
  AND journal.ts_ns <= own.ts_ns
  AND journal.ts_ns + journal.dur_ns > own.ts_ns
  AND own.wait IN ('journal handle', 'journal buffer')
WHERE own.wait_id = $wait_id
ORDER BY journal.commit_id
LIMIT 1;
