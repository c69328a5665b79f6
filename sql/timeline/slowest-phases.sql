-- Slowest with phases: the 20 syncs that waited longest, with what their time
-- went to, the longest phase first. A phase below a hundredth of it is left
-- out. Phases are null if they are not recorded.
WITH
  slowest AS (
    SELECT sync_id, ts_ns, dur_ns, op, path, comm, tid, bytes, bios, ret
    FROM syncline_sync
    WHERE
      dur_ns IS NOT NULL
    ORDER BY
      dur_ns DESC,
      sync_id
    LIMIT 20
  ),
  part AS (
    SELECT
      slowest.sync_id,
      iif(phase = 'residue', 'not explained', phase) AS phase,
      SUM(syncline_phase.dur_ns) AS phase_ns
    FROM slowest
    JOIN syncline_phase USING (sync_id)
    GROUP BY
      slowest.sync_id,
      phase
    HAVING
      phase_ns * 100 >= slowest.dur_ns
      AND phase_ns > 0
  ),
  line AS (
    SELECT
      sync_id,
      group_concat(printf('%.1f ms %s', phase_ns / 1e6, phase), ', ') AS phases
    FROM (SELECT * FROM part ORDER BY sync_id, phase_ns DESC, phase)
    GROUP BY
      sync_id
  )
SELECT
  printf('%.3f', dur_ns / 1e6) AS latency_ms,
  path,
  op,
  comm,
  tid,
  phases,
  bytes,
  bios,
  ret,
  ts_ns AS ts,
  dur_ns AS dur,
  sync_id
FROM slowest
LEFT JOIN line USING (sync_id)
ORDER BY
  dur_ns DESC,
  sync_id;
