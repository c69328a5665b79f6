-- Slowest: the sync that waited longest, and the phase with most of its time.
--
-- `parts` is the number of its sync requests. `requests` is how many of its
-- bios are really requests of the block layer, because the recording lacks the
-- bios in them.
WITH
  slowest AS (
    SELECT
      run, sync_id, call_sync_id,
      requests AS parts,
      op,
      COALESCE(path, 'inode ' || ino || ' on ' || dev, what) AS path,
      comm, tid, ts_ns, dur_ns, syscall_ns, bytes, bios
    FROM syncline_sync_call
    WHERE dur_ns IS NOT NULL
    ORDER BY dur_ns DESC, run, sync_id
    LIMIT 1
  ),
  main_phase AS (
    SELECT phase, SUM(syncline_phase.dur_ns) AS phase_ns
    FROM slowest
    JOIN syncline_sync AS request
      ON request.run = slowest.run
      AND request.call_sync_id = slowest.call_sync_id
    JOIN syncline_phase
      ON syncline_phase.run = request.run
      AND syncline_phase.sync_id = request.sync_id
    GROUP BY phase
    ORDER BY 2 DESC, phase
    LIMIT 1
  )
SELECT
  slowest.*,
  phase,
  CAST(phase_ns AS BIGINT) AS phase_ns,
  (
    SELECT COUNT(*)
    FROM syncline_bio AS bio
    JOIN syncline_sync AS request
      ON request.run = bio.run
      AND request.sync_id = bio.sync_id
    WHERE
      request.run = slowest.run
      AND request.call_sync_id = slowest.call_sync_id
      AND bio.is_request
  ) AS requests
FROM slowest
LEFT JOIN main_phase ON phase_ns > 0;
