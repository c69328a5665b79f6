-- What a sync waits for in a phase, if somebody else may be the reason.
--
-- Result: text: queue (its own bios are queued), earlier (writeback), device,
--   flush, before (a commit, the one before it), locking (of a commit), data
--   (that a commit writes), commit (its start, or its blocks), cpu (or a
--   worker), or lock (the rest of a commit, a log, or a lock). Null for the
--   time in which the sync runs, or in which nothing explains it.
--
-- Example: SELECT way_of_phase!(phase), SUM(dur_ns) FROM syncline_phase
--   GROUP BY 1
CREATE PERFETTO MACRO way_of_phase(
  -- The name of a phase.
  phase Expr
)
RETURNS Expr
AS
(
  CASE
    WHEN $phase IN ('submit', 'after completion', 'residue') THEN NULL
    WHEN $phase IN ('queue', 'device', 'flush') THEN $phase
    WHEN $phase IN ('writeback', 'earlier writeback') THEN 'earlier'
    WHEN $phase = 'earlier commit' THEN 'before'
    WHEN $phase = 'commit locking' THEN 'locking'
    WHEN $phase = 'commit flushing' THEN 'data'
    WHEN $phase IN ('commit start', 'commit logging') THEN 'commit'
    WHEN $phase IN ('cpu wait', 'completion') THEN 'cpu'
    ELSE 'lock'
  END
);
