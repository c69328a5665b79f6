-- Disk: the bios that were at a device between the first sync of their run and
-- the end of the last one, each with the number of who used it. Users are
-- numbered from 0, the one with the most time first; those from number :users
-- on share that number.
--
-- A user is the owner of bios, as the report `neighbours` has it, and what it
-- used the device for: syncs, journal, reads, discards, or else writes.
WITH
  span AS (
    SELECT
      run,
      MIN(ts_ns) AS first_ns,
      MAX(ts_ns + COALESCE(dur_ns, 0)) AS last_ns
    FROM syncline_sync_call
    GROUP BY run
  ),
  used AS MATERIALIZED (
    SELECT
      process, cgroup, bytes,
      CASE
        WHEN direction = 'read' THEN 'reads'
        WHEN direction IN ('discard', 'zeroes') THEN 'discards'
        WHEN is_log = 1 THEN 'journal'
        WHEN part = 'sync' THEN 'syncs'
        ELSE 'writes'
      END AS what,
      later!(issue_ns, first_ns) - first_ns AS ts_ns,
      earlier!(ts_ns + dur_ns, last_ns) - later!(issue_ns, first_ns) AS dur_ns
    FROM owned_bios!()
    JOIN span USING (run)
    WHERE issue_ns < last_ns AND ts_ns + dur_ns > first_ns
  ),
  numbered AS (
    SELECT
      process, cgroup, what,
      ROW_NUMBER() OVER (
        ORDER BY SUM(dur_ns) DESC, process, cgroup NULLS LAST, what
      )
      - 1 AS place
    FROM used
    GROUP BY process, cgroup, what
  )
SELECT
  CASE WHEN place < :users THEN place ELSE :users END AS number,
  place,
  of!(used, (process, cgroup, what, ts_ns, dur_ns, bytes))
FROM used
JOIN numbered ON same!(numbered, used, (process, cgroup, what));
