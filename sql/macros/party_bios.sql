-- Bios by the number of their party, as device_use! needs them, with what the
-- thread of the journal does for blocks that are there for another program.
--
-- The journal hands such a block over, and looks at it later, while the device
-- has nothing of the commit. Then it keeps the next bio back for the program.
--
-- Result: a row for each bio, and up to two for each such block, with
--   run, place, part, ts_ns, dur_ns, issue_ns, is_log, is_metadata,
--   has_preflush  Of owned_bios!.
--   party      Its number.
--   is_kept    1 for writeback of a writer's data, because the kernel may keep
--              it back until its issue, and while the journal does so.
--   is_kernel  1 for a thread of the kernel.
--
-- Example: SELECT party, COUNT(*) FROM party_bios!(owned_bio, party)
--   GROUP BY party
CREATE PERFETTO MACRO party_bios(
  -- Table with the columns of owned_bios!.
  bios TableOrSubquery,
  -- Table with the columns of parties!.
  parties TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT
    of!(_bio, (run, place, part, ts_ns, dur_ns, issue_ns)),
    of!(_bio, (is_log, is_metadata, has_preflush)),
    _party.party AS party,
    CASE WHEN part = 'data' THEN 1 ELSE 0 END AS is_kept,
    CASE WHEN kind = 'kernel' THEN 1 ELSE 0 END AS is_kernel
  FROM $bios AS _bio
  JOIN $parties AS _party USING (run, owner)
  UNION ALL
  SELECT
    _piece.run, place, 'change', from_ns,
    until_ns - from_ns,
    until_ns, 0, 1, 0, party, 1, 0
  FROM (
    SELECT
      run, place, process, cgroup,
      submit_from_ns AS from_ns,
      submit_ns AS until_ns
    FROM journal_blocks!() AS _submitted
    UNION ALL
    SELECT run, place, process, cgroup, look_from_ns, look_until_ns
    FROM journal_blocks!() AS _looked_at
  ) AS _piece
  JOIN $parties AS _changer
    ON _changer.run = _piece.run
    AND _changer.owner = _piece.process || ' ' || COALESCE(_piece.cgroup, '')
  WHERE until_ns > from_ns
);
