-- Busy: how long requests were in flight in each bin of time, by file and
-- thread. A request adds its time in each bin that it overlaps.
WITH RECURSIVE
  bound AS (
    SELECT MAX(width_ns) * :step AS width_ns, MAX(since_ns + dur_ns) AS end_ns
    FROM _page_request
  ),
  bin AS (
    SELECT CAST(0 AS BIGINT) AS bin, CAST(0 AS BIGINT) AS begin_ns
    UNION ALL
    SELECT bin.bin + :step, bin.begin_ns + bound.width_ns
    FROM bin
    CROSS JOIN bound
    WHERE bin.begin_ns + bound.width_ns < bound.end_ns
  ),
  flight AS (
    SELECT
      bin - bin % :step AS bin,
      CASE WHEN file < :files THEN file ELSE :files END AS file,
      CASE WHEN thread < :threads THEN thread ELSE :threads END AS thread,
      since_ns,
      since_ns + dur_ns AS end_ns,
      width_ns * :step AS width_ns,
      width_ns * (bin - bin % :step + :step) AS next_ns
    FROM _page_request
    WHERE dur_ns > 0
  ),
  part AS (
    SELECT bin, file, thread, end_ns - since_ns AS busy_ns
    FROM flight
    WHERE end_ns <= next_ns
    UNION ALL
    SELECT
      bin.bin, flight.file, flight.thread,
      CASE
        WHEN flight.end_ns < bin.begin_ns + flight.width_ns THEN flight.end_ns
        ELSE bin.begin_ns + flight.width_ns
      END
      - CASE
        WHEN flight.since_ns > bin.begin_ns THEN flight.since_ns
        ELSE bin.begin_ns
      END
    FROM flight
    JOIN bin ON bin.bin >= flight.bin AND bin.begin_ns < flight.end_ns
    WHERE flight.end_ns > flight.next_ns
  )
SELECT bin, file, thread, SUM(busy_ns) AS busy_ns
FROM part
GROUP BY bin, file, thread
ORDER BY bin, file, thread;
