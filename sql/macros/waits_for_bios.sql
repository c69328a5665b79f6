-- What syncs wait for while they wait for bios of their own: for which one, and
-- since when it was at the device.
--
-- A phase of bios goes along the critical path: of the own bios that were
-- submitted before its end, it waits for the one that completes last. A phase
-- may begin long after the issue of this bio.
--
-- Result: a row for each phase queue, device, writeback, earlier writeback and
--   flush of the syncs, with
--   run, sync_id, ts_ns, dur_ns  Of the phase.
--   before_ns   When the bio was issued: the latest one, if several complete at
--               the same time. For a flush, when the thread began to wait. The
--               end of the phase for earlier writeback, where the bio is not
--               known. The begin of the phase if nothing else is known.
--   dev, place  The device of the bio, and where it was issued. Null if that is
--               not known, or if there are several.
--
-- Example: SELECT sync_id, MIN(before_ns)
--   FROM waits_for_bios!(sync, bio_times!()) GROUP BY sync_id
CREATE PERFETTO MACRO waits_for_bios(
  -- Table of syncs with `run`, `sync_id`, `end_ns`.
  syncs TableOrSubquery,
  -- Table of bios with the columns of bio_times!.
  bios TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _own_bio AS (
      SELECT
        of!(_bio, (run, sync_id, submit_ns, issue_ns, dev, place)),
        -- At its end a sync no longer waits.
        earlier!(_bio.complete_ns, _sync.end_ns) AS _done_ns
      FROM $syncs AS _sync
      JOIN $bios AS _bio USING (run, sync_id)
    ),
    _phase AS (
      SELECT
        of!(_phase, (run, sync_id, phase, ts_ns)),
        _phase.ts_ns + _phase.dur_ns AS _end_ns
      FROM $syncs AS _sync
      JOIN syncline_phase AS _phase USING (run, sync_id)
      WHERE
        _phase.dur_ns > 0
        AND _phase.phase IN (
          'queue', 'device', 'writeback', 'earlier writeback', 'flush'
        )
    ),
    _reaching AS (
      SELECT *
      FROM latest_until!(
        (
          SELECT *, _end_ns - 1 AS at_ns
          FROM _phase
          WHERE phase IN ('queue', 'device', 'writeback')
        ),
        (SELECT *, submit_ns AS at_ns, _done_ns AS value_ns FROM _own_bio),
        (ts_ns),
        (run, sync_id)
      )
    ),
    _awaited AS (
      SELECT
        of!(_reaching, (run, sync_id, ts_ns)),
        MAX(issue_ns) AS _issue_ns,
        CASE WHEN MIN(dev) = MAX(dev) THEN MIN(dev) END AS dev,
        CASE WHEN MIN(place) = MAX(place) THEN MIN(place) END AS place
      FROM _reaching
      JOIN _own_bio
        ON _own_bio.run = _reaching.run
        AND _own_bio.sync_id = _reaching.sync_id
        AND _own_bio.submit_ns <= _reaching.at_ns
        AND _own_bio._done_ns = _reaching.value_ns
      GROUP BY of!(_reaching, (run, sync_id, ts_ns))
      UNION ALL
      -- A flush is sent when the thread begins to wait for it.
      SELECT of!(_phase, (run, sync_id, ts_ns)), MAX(wait.ts_ns), NULL, NULL
      FROM _phase
      JOIN syncline_wait AS wait
        ON wait.run = _phase.run
        AND wait.sync_id = _phase.sync_id
        AND wait.wait = _phase.phase
        AND wait.ts_ns <= _phase.ts_ns
      WHERE _phase.phase = 'flush'
      GROUP BY of!(_phase, (run, sync_id, ts_ns))
    )
  SELECT
    of!(_phase, (run, sync_id, ts_ns)),
    _end_ns - _phase.ts_ns AS dur_ns,
    CASE phase
      WHEN 'earlier writeback' THEN _end_ns
      ELSE COALESCE(_issue_ns, _phase.ts_ns)
    END AS before_ns,
    of!(_awaited, (dev, place))
  FROM _phase
  LEFT JOIN _awaited ON same!(_awaited, _phase, (run, sync_id, ts_ns))
);
