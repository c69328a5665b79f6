-- Slowest with phases: the 20 syncs that waited longest, with what their time
-- went to, the longest phase first. The phases below a hundredth of it are one,
-- `other`. Phases are null if they are not recorded.
WITH
  slowest AS (
    SELECT
      sync_id, call_sync_id, ts_ns, dur_ns, op,
      COALESCE(path, what) AS path,
      comm, tid, bytes, bios, ret
    FROM syncline_sync_call
    WHERE dur_ns IS NOT NULL
    ORDER BY dur_ns DESC, sync_id
    LIMIT 20
  ),
  part AS (
    SELECT
      slowest.sync_id, slowest.dur_ns, phase,
      SUM(syncline_phase.dur_ns) AS phase_ns
    FROM slowest
    JOIN syncline_sync AS request USING (call_sync_id)
    JOIN syncline_phase ON syncline_phase.sync_id = request.sync_id
    GROUP BY slowest.sync_id, slowest.dur_ns, phase
    HAVING phase_ns > 0
  ),
  named AS (
    SELECT
      sync_id,
      CASE
        WHEN phase_ns * 100 < dur_ns THEN 'other'
        WHEN phase = 'residue' THEN 'not explained'
        ELSE phase
      END AS phase,
      SUM(phase_ns) AS phase_ns
    FROM part
    GROUP BY 1, 2
    UNION ALL
    SELECT sync_id, 'no recorded phase', dur_ns - SUM(phase_ns) AS rest_ns
    FROM part
    GROUP BY sync_id, dur_ns
    HAVING rest_ns > 0
  ),
  line AS (
    SELECT
      sync_id,
      group_concat(printf('%.1f ms %s', phase_ns / 1e6, phase), ', ') AS phases
    FROM (
      SELECT *
      FROM named
      -- What would be 0.0 ms.
      WHERE phase_ns >= 50000
      ORDER BY
        sync_id,
        phase IN ('other', 'no recorded phase'),
        phase_ns DESC,
        phase
    )
    GROUP BY sync_id
  )
SELECT
  printf('%.3f', dur_ns / 1e6) AS latency_ms,
  path, op, comm, tid, phases, bytes, bios, ret,
  ts_ns AS ts,
  dur_ns AS dur,
  sync_id
FROM slowest
LEFT JOIN line USING (sync_id)
ORDER BY dur_ns DESC, sync_id;
