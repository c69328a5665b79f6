-- Slowest with phases: the 20 syncs that waited longest, with what their time
-- went to, the longest phase first. The phases below a hundredth of it are one,
-- `other`. Phases are null if they are not recorded. The UI makes a link to the
-- slice of the column id, for which it needs the columns slice_id, ts, dur and
-- track_id.
WITH
  slowest AS (
    SELECT
      sync_id, call_sync_id, ts_ns, dur_ns, op,
      COALESCE(start_ns, ts_ns) AS slice_ns,
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
  found.id,
  printf('%.3f', slowest.dur_ns / 1e6) AS latency_ms,
  path, op, comm, tid, phases, bytes, bios, ret,
  ts_ns AS ts,
  slowest.dur_ns AS dur,
  slowest.sync_id,
  found.id AS slice_id,
  found.track_id
FROM slowest
LEFT JOIN line USING (sync_id)
LEFT JOIN slice AS found
  ON found.ts = slice_ns
  AND found.category = 'syncline.sync'
  AND extract_arg(found.arg_set_id, 'debug.sync_id') = slowest.sync_id
ORDER BY slowest.dur_ns DESC, slowest.sync_id;
