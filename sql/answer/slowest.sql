-- Slowest: the sync that waited longest, and the phase with most of its time.
--
-- `requests` counts those of its bios that are requests of the block layer,
-- because the bios in them are not recorded.
WITH
  slowest AS (
    SELECT
      run,
      sync_id,
      op,
      COALESCE(path, 'inode ' || CAST(ino AS TEXT) || ' on ' || dev) AS path,
      comm,
      tid,
      ts_ns,
      dur_ns,
      syscall_ns,
      bytes,
      bios
    FROM syncline_sync
    WHERE
      dur_ns IS NOT NULL
    ORDER BY
      dur_ns DESC,
      run,
      sync_id
    LIMIT 1
  ),
  part AS (
    SELECT phase, SUM(syncline_phase.dur_ns) AS phase_ns
    FROM slowest
    JOIN syncline_phase
      ON syncline_phase.run = slowest.run
      AND syncline_phase.sync_id = slowest.sync_id
    GROUP BY
      phase
    ORDER BY
      2 DESC,
      phase
    LIMIT 1
  )
SELECT
  slowest.*,
  phase,
  CAST(phase_ns AS BIGINT) AS phase_ns,
  (
    SELECT COUNT(*)
    FROM syncline_bio AS bio
    WHERE
      bio.run = slowest.run
      AND bio.sync_id = slowest.sync_id
      AND bio.is_request
  ) AS requests
FROM slowest
LEFT JOIN part ON phase_ns > 0;
