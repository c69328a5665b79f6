-- For whom each device had bios, over time: the syncs of a process, its other
-- bios, or a journal. A bio counts from its issue to its completion.
--
-- Result: rows that do not overlap in a place and of one user, with
--   run            As in the tables.
--   place          The device: below partitions and device mappers, where that
--                  is recorded. Empty if the recording does not name devices.
--   use            syncs, writes, reads, journal, or the direction of other
--                  bios.
--   process        Name of the process. Null for a journal and if unknown.
--   cgroup         Its control group. Null likewise.
--   ts_ns, dur_ns  When.
--
-- Example: SELECT use, process, SUM(dur_ns) FROM device_users!()
--   GROUP BY use, process
CREATE PERFETTO MACRO device_users()
RETURNS TableOrSubquery
AS
(
  SELECT run, place, use, process, cgroup, ts_ns, dur_ns
  FROM merged!(
    (
      SELECT
        run, place,
        CASE
          WHEN is_log = 1 THEN 'journal'
          WHEN part = 'sync' THEN 'syncs'
          WHEN direction IN ('write', 'flush') THEN 'writes'
          WHEN direction = 'read' THEN 'reads'
          ELSE COALESCE(direction, 'bios')
        END AS use,
        CASE WHEN is_log = 0 THEN NULLIF(process, '') END AS process,
        CASE WHEN is_log = 0 THEN cgroup END AS cgroup,
        issue_ns AS ts_ns,
        ts_ns + dur_ns - issue_ns AS dur_ns
      FROM owned_bios!()
      UNION ALL
      -- Without the device of a bio, nothing is known of whom it works for but
      -- what the bio itself says.
      SELECT
        bio.run, '',
        CASE WHEN bio.sync_id IS NULL THEN 'writes' ELSE 'syncs' END,
        COALESCE(sync.process, sync.comm, bio.writers, bio.process, bio.comm),
        COALESCE(sync.cgroup, bio.writers_cgroup, bio.cgroup),
        bio.ts_ns + COALESCE(bio.queue_ns, 0),
        bio.dur_ns - COALESCE(bio.queue_ns, 0)
      FROM syncline_bio AS bio
      LEFT JOIN syncline_sync AS sync
        ON sync.run = bio.run
        AND sync.sync_id = bio.sync_id
      WHERE bio.dev IS NULL AND bio.dur_ns IS NOT NULL
    ),
    (run, place, use, process, cgroup)
  )
);
