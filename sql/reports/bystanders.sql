-- Bystanders: whose bios were at the device before those of the slowest syncs.
--
-- The slowest percent of the requests with a known start and end, at least 10
-- and at most 100. A request waits for its own bios (the phases queue, device,
-- writeback, earlier writeback and flush) and for those of the commits that it
-- waits for. ahead_ns is the part of this time in which the device had a bio of
-- the bystander that was issued before the bio that the request waits for, or
-- before its flush. A bio that was issued later is not ahead, nor one of
-- another device. A bio that a partition or a device mapper redirected, by a
-- recorded remap, is at the device below: there it meets the bios of others to
-- this device, and those of other partitions and mappings on it. Without the
-- remap of one of two bios, they meet only if they were submitted to the same
-- device. In the phase earlier writeback, it is not known which bio the request
-- waits for, so each bio at its devices is ahead. On a device that works on one
-- bio at a time, this is what the bystander cost. Other devices work on
-- several, so it is the most that it may have cost. The rows overlap: `itself`
-- is the whole wait for the requests' own bios, also behind those of others,
-- and several bystanders may share an instant.
--
-- An input whose bios have no known device gives no rows. Somebody who reads is
-- seen only where the input has reads, which many recorders leave out.
--
-- Columns:
--   kind       text   itself: the requests' own bios. commit: bios of the
--                     commits that they waited for. sync: bios of other
--                     requests. journal: bios of other commits. read: bios
--                     that read. discard, zeroes, unknown: bios of these
--                     directions. background: all other bios, such as direct
--                     I/O and writeback by the kernel.
--   comm       text   Name of the thread that submitted the bios.
--   process    text   Name of its process.
--   cgroup     text   Control group of the process. Of what a flusher thread
--                     writes, that of the writers, if it is known. Null for a
--                     journal, which works for all groups.
--   writers    text   Name of the process that made the data dirty that these
--                     bios wrote, or several names; for bios of no request. It
--                     is inferred from the file.
--   path       text   Path of the file of the other requests, or of the only
--                     file that these bios wrote.
--   threads    count  Number of threads with this name.
--   syncs      count  Number of the slowest requests that it was ahead of; for
--                     itself and commit, that had such bios.
--   of_syncs   count  Number of the slowest requests.
--   bios       count  Number of its bios that were ahead.
--   bytes      bytes  Their size.
--   others_bytes  bytes  For commit: part of it that is data of files that none
--                     of these requests synced. Null if it is not recorded
--                     what each bio wrote.
--   ahead_ns   ns     Time in which at least one of them was ahead, summed over
--                     the requests; for itself and commit, time in which the
--                     requests waited for them.
--   share      share  Part of the time of the slowest requests.
--   max_ns     ns     The longest such time of one request.
--   sync_id    id     That request.
--   run        text   Name of the run, if the input holds several.
WITH
  complete AS (
    SELECT
      run, sync_id, path, dev, ino, start_ns,
      ts_ns + dur_ns AS end_ns,
      ts_ns + dur_ns - start_ns AS time_ns,
      ROW_NUMBER() OVER (
        PARTITION BY run
        ORDER BY ts_ns + dur_ns - start_ns DESC, sync_id
      ) AS place,
      COUNT(*) OVER (PARTITION BY run) AS syncs
    FROM syncline_sync
    WHERE start_ns IS NOT NULL AND dur_ns IS NOT NULL AND bios IS NOT NULL
  ),
  -- Bios with a known device, from their issue (the submit, where the issue is
  -- not recorded) to their completion.
  bio AS MATERIALIZED (
    SELECT
      run, bio_id, sync_id, direction, commit_id, dev, below,
      -- Where it is issued.
      COALESCE(below, dev) AS place,
      tid, comm, process,
      -- A flusher thread works for the groups of the writers, and has another
      -- one itself.
      CASE
        WHEN sync_id IS NULL
        AND writers IS NOT NULL THEN writers_cgroup
        WHEN sync_id IS NULL
        AND SUBSTR(comm, 1, 8) = 'kworker/' THEN NULL
        ELSE cgroup
      END AS cgroup,
      -- A request has its own thread and file.
      CASE WHEN sync_id IS NULL THEN writers END AS writers,
      path AS file,
      -- In a commit, a bio is of the journal, or of one file. Null if that is
      -- not known.
      CASE WHEN rwbs LIKE '%M%' THEN 0 ELSE ino END AS ino,
      bytes,
      ts_ns AS submit_ns,
      ts_ns + COALESCE(queue_ns, 0) AS issue_ns,
      ts_ns + dur_ns AS complete_ns
    FROM syncline_bio
    WHERE dev IS NOT NULL AND dur_ns IS NOT NULL
  ),
  -- Without a known device, nothing is known of bystanders.
  slow AS MATERIALIZED (
    SELECT run, sync_id, dev, ino, start_ns, end_ns, time_ns
    FROM complete
    WHERE
      (place <= 10 OR (place <= 100 AND place * 100 <= syncs))
      AND run IN (SELECT run FROM bio)
  ),
  total AS (
    SELECT run, COUNT(*) AS syncs, SUM(time_ns) AS time_ns
    FROM slow
    GROUP BY run
  ),
  -- The commits that the slowest requests waited for.
  commit_wait AS MATERIALIZED (
    SELECT
      slow.run AS run,
      slow.sync_id AS sync_id,
      slow.ino AS ino,
      journal.commit_id AS commit_id,
      MIN(wait.ts_ns) AS wait_ns,
      MAX(wait.ts_ns + wait.dur_ns) AS wait_end_ns
    FROM slow
    JOIN syncline_wait AS wait
      ON wait.run = slow.run
      AND wait.sync_id = slow.sync_id
    JOIN syncline_journal AS journal
      ON journal.run = wait.run
      AND journal.commit_id = wait.commit_id
    WHERE journal.dur_ns IS NOT NULL
    GROUP BY slow.run, slow.sync_id, slow.ino, journal.commit_id
  ),
  commit_bio AS MATERIALIZED (
    SELECT
      commit_wait.run AS run,
      commit_wait.sync_id AS sync_id,
      bio.bio_id AS bio_id,
      bio.dev AS dev,
      bio.place AS place,
      bio.comm AS comm,
      bio.tid AS tid,
      bio.bytes AS bytes,
      -- A sync of the whole file system is for each file.
      CASE
        WHEN bio.ino IN (0, COALESCE(commit_wait.ino, bio.ino)) THEN 0
        WHEN bio.ino IS NOT NULL THEN 1
      END AS of_others,
      CASE WHEN submit_ns > wait_ns THEN submit_ns ELSE wait_ns END AS from_ns,
      CASE
        WHEN bio.complete_ns < wait_end_ns THEN bio.complete_ns
        ELSE wait_end_ns
      END AS until_ns,
      bio.issue_ns AS issue_ns
    FROM commit_wait
    JOIN bio
      ON bio.run = commit_wait.run
      AND bio.commit_id = commit_wait.commit_id
    WHERE bio.complete_ns > wait_ns AND bio.submit_ns < wait_end_ns
  ),
  own_device AS MATERIALIZED (
    SELECT slow.run AS run, slow.sync_id AS sync_id, bio.dev AS dev
    FROM slow
    JOIN bio ON bio.run = slow.run AND bio.sync_id = slow.sync_id
    UNION
    SELECT run, sync_id, dev FROM commit_bio
    UNION
    SELECT run, sync_id, dev FROM slow WHERE dev IS NOT NULL
  ),
  -- A flush reaches all devices below.
  redirected AS (
    SELECT DISTINCT run, dev, below FROM bio WHERE below IS NOT NULL
  ),
  own_place AS MATERIALIZED (
    SELECT run, sync_id, dev AS place FROM own_device
    UNION
    SELECT own_device.run, own_device.sync_id, redirected.below
    FROM own_device
    JOIN redirected
      ON redirected.run = own_device.run
      AND redirected.dev = own_device.dev
  ),
  -- The own bios of each request. At its end it no longer waits for them.
  own_bio AS MATERIALIZED (
    SELECT
      slow.run AS run,
      slow.sync_id AS sync_id,
      bio.dev AS dev,
      bio.place AS place,
      bio.submit_ns AS submit_ns,
      bio.issue_ns AS issue_ns,
      CASE
        WHEN bio.complete_ns < slow.end_ns THEN bio.complete_ns
        ELSE slow.end_ns
      END AS complete_ns
    FROM slow
    JOIN bio ON bio.run = slow.run AND bio.sync_id = slow.sync_id
  ),
  phase AS MATERIALIZED (
    SELECT
      slow.run AS run,
      slow.sync_id AS sync_id,
      phase.phase AS phase,
      phase.ts_ns AS from_ns,
      phase.ts_ns + phase.dur_ns AS until_ns
    FROM slow
    JOIN syncline_phase AS phase
      ON phase.run = slow.run
      AND phase.sync_id = slow.sync_id
    WHERE
      phase.phase IN (
        'queue', 'device', 'writeback', 'earlier writeback', 'flush'
      )
      AND phase.dur_ns > 0
  ),
  -- A phase of bios goes along the critical path: of the own bios that were
  -- submitted before its end, it waits for the one that completes last. A phase
  -- may begin long after the issue of this bio.
  moment AS (
    SELECT
      run, sync_id,
      submit_ns AS at_ns,
      1 AS after,
      complete_ns,
      CAST(NULL AS BIGINT) AS from_ns
    FROM own_bio
    UNION ALL
    SELECT run, sync_id, until_ns, 0, NULL, from_ns
    FROM phase
    WHERE phase IN ('queue', 'device', 'writeback')
  ),
  reaching AS (
    SELECT
      run, sync_id, from_ns,
      at_ns AS until_ns,
      MAX(complete_ns) OVER (
        PARTITION BY run, sync_id
        ORDER BY at_ns, after
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS complete_ns
    FROM moment
  ),
  awaited AS MATERIALIZED (
    SELECT
      reaching.run AS run,
      reaching.sync_id AS sync_id,
      reaching.from_ns AS from_ns,
      MAX(own.issue_ns) AS issue_ns,
      CASE WHEN MIN(own.dev) = MAX(own.dev) THEN MIN(own.dev) END AS dev,
      CASE WHEN MIN(own.place) = MAX(own.place) THEN MIN(own.place) END AS place
    FROM reaching
    JOIN own_bio AS own
      ON own.run = reaching.run
      AND own.sync_id = reaching.sync_id
      AND own.complete_ns = reaching.complete_ns
      AND own.submit_ns < reaching.until_ns
    WHERE reaching.from_ns IS NOT NULL
    GROUP BY reaching.run, reaching.sync_id, reaching.from_ns
    UNION ALL
    SELECT
      phase.run, phase.sync_id, phase.from_ns,
      -- The flush is sent when the thread begins to wait for it.
      MAX(wait.ts_ns),
      NULL, NULL
    FROM phase
    JOIN syncline_wait AS wait
      ON wait.run = phase.run
      AND wait.sync_id = phase.sync_id
      AND wait.wait = 'flush'
      AND wait.ts_ns <= phase.from_ns
    WHERE phase.phase = 'flush'
    GROUP BY phase.run, phase.sync_id, phase.from_ns
  ),
  -- What each request waits for: from, until, and before when a bio of somebody
  -- else must have been issued to be ahead; the device and where its bios are
  -- issued, if it is only one.
  waiting AS MATERIALIZED (
    SELECT
      phase.run AS run,
      phase.sync_id AS sync_id,
      'itself' AS kind,
      phase.from_ns AS from_ns,
      phase.until_ns AS until_ns,
      CASE
        WHEN phase.phase = 'earlier writeback' THEN phase.until_ns
        ELSE COALESCE(awaited.issue_ns, phase.from_ns)
      END AS before_ns,
      awaited.dev AS dev,
      awaited.place AS place
    FROM phase
    LEFT JOIN awaited
      ON awaited.run = phase.run
      AND awaited.sync_id = phase.sync_id
      AND awaited.from_ns = phase.from_ns
    UNION ALL
    SELECT run, sync_id, 'commit', from_ns, until_ns, issue_ns, dev, place
    FROM commit_bio
  ),
  bio_at AS (
    SELECT run, bio_id, dev AS place, issue_ns, complete_ns FROM bio
    UNION ALL
    SELECT run, bio_id, below, issue_ns, complete_ns
    FROM bio
    WHERE below IS NOT NULL
  ),
  -- A bio may be near at its device and at the device below.
  near AS MATERIALIZED (
    SELECT DISTINCT
      slow.run AS run,
      slow.sync_id AS sync_id,
      bio_at.bio_id AS bio_id
    FROM slow
    JOIN own_place
      ON own_place.run = slow.run
      AND own_place.sync_id = slow.sync_id
    JOIN bio_at
      ON bio_at.run = slow.run
      AND bio_at.place = own_place.place
      AND bio_at.issue_ns < slow.end_ns
      AND bio_at.complete_ns > slow.start_ns
  ),
  -- Bios of others that were at a device of the request while it was in flight.
  other AS MATERIALIZED (
    SELECT
      near.run AS run,
      near.sync_id AS sync_id,
      bio.bio_id AS bio_id,
      CASE
        WHEN bio.sync_id IS NOT NULL THEN 'sync'
        WHEN bio.direction NOT IN ('write', 'flush') THEN bio.direction
        WHEN bio.tid IN (
          SELECT tid
          FROM syncline_journal AS journal
          WHERE journal.run = bio.run AND journal.kind = 'commit'
        ) THEN 'journal'
        ELSE 'background'
      END AS kind,
      bio.sync_id AS other_id,
      bio.tid AS tid,
      bio.comm AS comm,
      bio.process AS process,
      bio.cgroup AS cgroup,
      bio.writers AS writers,
      bio.file AS file,
      bio.bytes AS bytes,
      bio.dev AS dev,
      bio.below AS below,
      bio.place AS place,
      bio.issue_ns AS issue_ns,
      bio.complete_ns AS complete_ns
    FROM near
    JOIN bio ON bio.run = near.run AND bio.bio_id = near.bio_id
    WHERE
      bio.sync_id IS DISTINCT FROM near.sync_id
      AND NOT EXISTS (
        SELECT 1
        FROM commit_bio
        WHERE
          commit_bio.run = near.run
          AND commit_bio.sync_id = near.sync_id
          AND commit_bio.bio_id = bio.bio_id
      )
  ),
  ahead AS MATERIALIZED (
    SELECT
      waiting.run AS run,
      waiting.sync_id AS sync_id,
      other.bio_id AS bio_id,
      other.kind AS kind,
      other.tid AS tid,
      other.comm AS comm,
      other.process AS process,
      -- A journal commits for all groups.
      CASE WHEN other.kind <> 'journal' THEN other.cgroup END AS cgroup,
      other.writers AS writers,
      sync.path AS path,
      other.file AS file,
      other.bytes AS bytes,
      CASE
        WHEN waiting.from_ns > other.issue_ns THEN waiting.from_ns
        ELSE other.issue_ns
      END AS from_ns,
      CASE
        WHEN waiting.until_ns < other.complete_ns THEN waiting.until_ns
        ELSE other.complete_ns
      END AS until_ns
    FROM waiting
    JOIN other
      ON other.run = waiting.run
      AND other.sync_id = waiting.sync_id
      AND other.issue_ns < waiting.before_ns
      AND other.complete_ns > waiting.from_ns
      AND other.issue_ns < waiting.until_ns
      AND (waiting.place IS NULL
      OR other.place = waiting.place
      -- One of the two has no recorded remap.
      OR (other.dev = waiting.dev
      AND (other.below IS NULL OR waiting.place = waiting.dev)))
    LEFT JOIN syncline_sync AS sync
      ON sync.run = other.run
      AND sync.sync_id = other.other_id
    UNION ALL
    SELECT
      waiting.run, waiting.sync_id, NULL, waiting.kind, NULL, NULL, NULL, NULL,
      NULL, NULL, NULL, NULL, from_ns, until_ns
    FROM waiting
  ),
  -- Each instant counts once for a request and a bystander.
  reach AS (
    SELECT
      run, sync_id, kind, comm, process, cgroup, writers, path, from_ns,
      until_ns,
      MAX(until_ns) OVER (
        PARTITION BY run, sync_id, kind, comm, process, cgroup, writers, path
        ORDER BY from_ns, until_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ns
    FROM ahead
  ),
  delay AS (
    SELECT
      run, sync_id, kind, comm, process, cgroup, writers, path,
      SUM(
        CASE
          WHEN reached_ns IS NULL
          OR reached_ns <= from_ns THEN until_ns - from_ns
          WHEN reached_ns < until_ns THEN until_ns - reached_ns
          ELSE 0
        END
      ) AS ahead_ns
    FROM reach
    GROUP BY run, sync_id, kind, comm, process, cgroup, writers, path
  ),
  ranked AS (
    SELECT
      *,
      ROW_NUMBER() OVER (
        PARTITION BY run, kind, comm, process, cgroup, writers, path
        ORDER BY ahead_ns DESC, sync_id
      ) AS place
    FROM delay
  ),
  cost AS (
    SELECT
      run, kind, comm, process, cgroup, writers, path,
      COUNT(*) AS syncs,
      SUM(ahead_ns) AS ahead_ns,
      MAX(ahead_ns) AS max_ns,
      MAX(CASE WHEN place = 1 THEN sync_id END) AS sync_id
    FROM ranked
    GROUP BY run, kind, comm, process, cgroup, writers, path
  ),
  -- A bio may be ahead of several requests, or several times of one.
  each_bio AS (
    SELECT DISTINCT
      run, kind, comm, process, cgroup, writers, path, file, bio_id, tid, bytes,
      CAST(NULL AS BIGINT) AS of_others
    FROM ahead
    WHERE bio_id IS NOT NULL
    UNION ALL
    SELECT
      run, 'commit', NULL, NULL, NULL, NULL, NULL, NULL, bio_id, tid, bytes,
      MIN(of_others)
    FROM commit_bio
    GROUP BY run, bio_id, tid, bytes
    UNION ALL
    SELECT
      slow.run, 'itself', NULL, NULL, NULL, NULL, NULL, NULL, bio.bio_id,
      bio.tid, bio.bytes, NULL
    FROM slow
    JOIN bio ON bio.run = slow.run AND bio.sync_id = slow.sync_id
  ),
  amount AS (
    SELECT
      run, kind, comm, process, cgroup, writers, path,
      CASE
        WHEN COUNT(file) = COUNT(*)
        AND MIN(file) = MAX(file) THEN MIN(file)
      END AS file,
      COUNT(*) AS bios,
      COUNT(DISTINCT tid) AS threads,
      SUM(bytes) AS bytes,
      COUNT(of_others) AS known,
      SUM(of_others * bytes) AS others
    FROM each_bio
    GROUP BY run, kind, comm, process, cgroup, writers, path
  )
SELECT
  cost.kind AS kind,
  cost.comm AS comm,
  cost.process AS process,
  cost.cgroup AS cgroup,
  cost.writers AS writers,
  COALESCE(cost.path, amount.file) AS path,
  amount.threads AS threads,
  cost.syncs AS syncs,
  total.syncs AS of_syncs,
  amount.bios AS bios,
  amount.bytes AS bytes,
  CASE WHEN known = amount.bios THEN others END AS others_bytes,
  cost.ahead_ns AS ahead_ns,
  CAST(cost.ahead_ns AS DOUBLE) / NULLIF(total.time_ns, 0) AS share,
  cost.max_ns AS max_ns,
  cost.sync_id AS sync_id,
  cost.run AS run
FROM cost
JOIN total ON total.run = cost.run
LEFT JOIN amount
  ON amount.run = cost.run
  AND amount.kind = cost.kind
  AND amount.comm IS NOT DISTINCT FROM cost.comm
  AND amount.process IS NOT DISTINCT FROM cost.process
  AND amount.cgroup IS NOT DISTINCT FROM cost.cgroup
  AND amount.writers IS NOT DISTINCT FROM cost.writers
  AND amount.path IS NOT DISTINCT FROM cost.path
ORDER BY
  cost.run,
  CASE cost.kind WHEN 'itself' THEN 0 WHEN 'commit' THEN 1 ELSE 2 END,
  cost.ahead_ns DESC,
  cost.kind,
  cost.comm NULLS LAST,
  cost.process NULLS LAST,
  cost.cgroup NULLS LAST,
  cost.writers NULLS LAST,
  cost.path NULLS LAST;
