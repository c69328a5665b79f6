-- Busy: how long requests were in flight in each bin of time, by file and
-- thread. A request adds its time in each bin that it overlaps. :width is the
-- width of a bin in ns, before :step of them are merged.
SELECT bin * :step AS bin, file, thread, time_ns AS busy_ns
FROM binned_time!(
  (
    SELECT
      CASE WHEN file < :files THEN file ELSE :files END AS file,
      CASE WHEN thread < :threads THEN thread ELSE :threads END AS thread,
      since_ns AS ts_ns,
      dur_ns
    FROM _page_request
  ),
  :width * :step,
  (file, thread)
)
ORDER BY bin, file, thread;
