-- Area phases: what the time of the requests went to, most first. The residue
-- comes last, because it is what none of the others explains.
SELECT phase, SUM(syncline_phase.dur_ns) AS time_ns
FROM _syncline_plugin_area
JOIN syncline_phase USING (sync_id)
WHERE syncline_phase.dur_ns > 0
GROUP BY phase
ORDER BY phase = 'residue', time_ns DESC, phase;
