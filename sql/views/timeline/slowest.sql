-- Slowest: the 20 syncs that waited longest, as slices named by latency and
-- file.
SELECT
  ts_ns AS ts,
  dur_ns AS dur,
  printf(
    '%s %s',
    -- Three digits. %g would write 1590 as 1.59e+03.
    CASE
      WHEN dur_ns >= 999500000000 THEN printf('%.0f s', dur_ns / 1e9)
      WHEN dur_ns >= 999500000 THEN printf('%.3g s', dur_ns / 1e9)
      WHEN dur_ns >= 999500 THEN printf('%.3g ms', dur_ns / 1e6)
      WHEN dur_ns >= 1000 THEN printf('%.3g µs', dur_ns / 1e3)
      ELSE printf('%d ns', dur_ns)
    END,
    COALESCE(
      -- What follows the last slash.
      NULLIF(last_name!(path), ''),
      path, what, op, 'sync'
    )
  ) AS name
FROM syncline_sync_call
WHERE dur_ns IS NOT NULL
ORDER BY dur_ns DESC, sync_id
LIMIT 20;
