-- Bystanders: whose bios were at the device before those of the slowest syncs.
--
-- It covers the slowest percent of the requests whose start, end and bios are
-- known: at least 10, at most 100. Each waits for its own bios, in the phases
-- queue, device, writeback, earlier writeback and flush, and for the bios of
-- the commits that it waits for. The column ahead_ns is the part of this time
-- in which the device had a bio of the bystander that was issued before the
-- bio that the request waits for, or before its flush. A bio that was issued
-- later is not ahead, and neither is one of another device. Where the issue is
-- not recorded, the submit counts. Bios of the commits of xfs, btrfs and f2fs
-- are not known as such, so the time in which requests wait for these is left
-- out.
--
-- A bio that a partition or a device mapper redirected, by a recorded remap,
-- is at the device below, where it meets the bios of others to this device,
-- and of other partitions and mappings on it. Without the remap of one of two
-- bios, they meet only if they were submitted to the same device. In the phase
-- earlier writeback, it is not known which bio the request waits for, so each
-- bio at its devices is ahead.
--
-- On a device that works on one bio at a time, ahead_ns is what the bystander
-- cost. Other devices work on several, so it is the most that it may have
-- cost. The rows overlap: `itself` is the whole wait for the requests' own
-- bios, also behind bios of others, and several bystanders may share an
-- instant.
--
-- An input whose bios have no known device gives no rows. Somebody who reads
-- is seen only where the input has reads, which many recorders leave out.
--
-- Kinds:
--   itself      The requests' own bios and flushes, and earlier writeback for
--               which they waited, which may be of others.
--   commit      Bios of the commits that they waited for, meanwhile.
--   sync        Bios of other requests.
--   journal     Bios of commits for which they did not wait then, and all
--               others of a journal's thread, such as checkpoints.
--   read        Bios that read.
--   discard, zeroes, unknown  Bios of these directions.
--   background  All other bios, such as direct I/O and writeback by the kernel.
--
-- Narrow: kind comm ahead_ns share bytes path max_ns syncs bios sync_id
--
-- Columns:
--   kind       text   As above.
--   comm       text   Name of the thread that submitted the bios.
--   process    text   Name of its process.
--   cgroup     text   Control group of the process; for bios of no request,
--                     that of the writers, if these are known.
--                     Null for a journal, which works for all groups. A process
--                     that the recorder missed is taken to be in the group of
--                     the others of its name, if these share one.
--   writers    text   Name of the process that made the data dirty that these
--                     bios wrote, or several names; for bios of no request. It
--                     is inferred from the file, and for a block of a journal
--                     from its handles.
--   path       text   Path of the file of the other requests, or of the only
--                     file that these bios wrote.
--   threads    count  Number of threads that submitted these bios.
--   syncs      count  Number of the slowest requests that it was ahead of; for
--                     itself and commit, that waited so.
--   of_syncs   count  Number of the slowest requests.
--   bios       count  Number of its bios that were ahead; for itself, of all
--                     own bios; for commit, of those in flight meanwhile.
--   bytes      bytes  Their size.
--   others_bytes  bytes  For commit: part of it that is data of files that none
--                     of the requests that waited for the bio synced. Null if
--                     it is not known what each bio wrote, or for which file
--                     the requests waited.
--   ahead_ns   ns     Time in which at least one of them was ahead, summed over
--                     the requests; for itself and commit, time in which the
--                     requests waited for them.
--   share      share  Part of the time of the slowest requests.
--   max_ns     ns     The longest such time of one request.
--   sync_id    id     That request.
--   run        text   Name of the run, if the input holds several.
WITH
  -- The requests whose time is known, numbered from the slowest one on. Here
  -- `ts_ns` is their start; in syncline_sync it is the entry of their call.
  timed AS (
    SELECT
      of!(sync, (run, sync_id, dev, ino)),
      -- Whether it syncs every file.
      COALESCE(sync.op, part.op) IN ('sync', 'syncfs') AS is_of_all,
      start_ns AS ts_ns,
      ts_ns + dur_ns - start_ns AS dur_ns,
      ROW_NUMBER() OVER (
        PARTITION BY sync.run
        ORDER BY ts_ns + dur_ns - start_ns DESC, sync.sync_id
      ) AS number,
      COUNT(*) OVER (PARTITION BY sync.run) AS syncs
    FROM syncline_sync AS sync
    LEFT JOIN parts_of_calls!() AS part ON same!(part, sync, (run, sync_id))
    WHERE start_ns IS NOT NULL AND dur_ns IS NOT NULL AND bios IS NOT NULL
  ),
  -- All bios whose device and end are known.
  bio AS (
    SELECT
      *,
      -- What a bio of a commit holds: 0 is the journal, else data of the file
      -- of this inode. Null if that is not known.
      CASE WHEN writes_journal!(bio) = 1 THEN 0 ELSE ino END AS data_ino
    FROM bio_times!() AS bio
  ),
  -- The slowest requests, which the report is about. Without a known device,
  -- nothing is known of bystanders.
  slow AS (
    SELECT
      run, sync_id, dev, ino, is_of_all, ts_ns, dur_ns,
      ts_ns + dur_ns AS end_ns
    FROM timed
    WHERE
      (number <= 10 OR (number <= 100 AND number * 100 <= syncs))
      AND run IN (SELECT run FROM bio)
  ),
  total AS (
    SELECT run, COUNT(*) AS syncs, SUM(dur_ns) AS dur_ns FROM slow GROUP BY run
  ),
  own_bio AS (SELECT bio.* FROM slow JOIN bio USING (run, sync_id)),
  -- The commits that the slowest requests waited for, from the first wait to
  -- the end of the last one, because waits for a commit may be nested.
  commit_wait AS (
    SELECT
      of!(slow, (run, sync_id, ino, is_of_all)),
      journal.commit_id,
      MIN(wait.ts_ns) AS ts_ns,
      MAX(wait.ts_ns + wait.dur_ns) - MIN(wait.ts_ns) AS dur_ns
    FROM slow
    JOIN syncline_wait AS wait USING (run, sync_id)
    JOIN syncline_journal AS journal USING (run, commit_id)
    WHERE journal.dur_ns IS NOT NULL
    GROUP BY of!(slow, (run, sync_id, ino, is_of_all)), journal.commit_id
  ),
  -- The bios of these commits, while the requests waited for them.
  commit_bio AS (
    SELECT
      *,
      -- 1 if it holds data of a file that this request (`ino`) did not sync, 0
      -- if of its own file or of the journal, null if that is not known. A sync
      -- of a whole file system syncs every file.
      CASE
        WHEN data_ino IN (0, ino) THEN 0
        WHEN is_of_all
        AND data_ino > 0 THEN 0
        WHEN data_ino <> ino THEN 1
      END AS of_others
    FROM overlaps!(
      commit_wait, bio,
      (sync_id, ino, is_of_all),
      (bio_id, dev, place, issue_ns, data_ino),
      (run, commit_id)
    )
  ),
  -- The devices of each request: of its bios, of its commits and of its file.
  own_device AS (
    SELECT run, sync_id, dev FROM own_bio
    UNION
    SELECT run, sync_id, dev FROM commit_bio
    UNION
    SELECT run, sync_id, dev FROM slow WHERE dev IS NOT NULL
  ),
  -- Devices, and those below to which their bios were redirected.
  redirected AS (
    SELECT DISTINCT run, dev, below FROM bio WHERE below IS NOT NULL
  ),
  -- Where bios of each request may be issued: at its devices, or below them.
  own_place AS (
    SELECT run, sync_id, dev AS place FROM own_device
    UNION
    SELECT own_device.run, own_device.sync_id, redirected.below
    FROM own_device
    JOIN redirected USING (run, dev)
  ),
  -- The waits of each request: each phase of its own bios, and each bio of its
  -- commits. A bio of somebody else is ahead if it was issued before
  -- `before_ns`. `dev` and `place` are of the bio that the request waits for,
  -- and null where that bio is not known, as for a flush.
  own_wait AS (
    SELECT run, sync_id, 'itself' AS kind, ts_ns, dur_ns, before_ns, dev, place
    FROM waits_for_bios!(slow, bio)
    UNION ALL
    SELECT
      run, sync_id, 'commit', from_ns,
      until_ns - from_ns,
      issue_ns, dev, place
    FROM commit_bio
  ),
  -- The bios of others that were ahead of each request, and when. Its own bios
  -- and those of its commits are not of others, so the last two joins and WHERE
  -- drop them.
  ahead AS (
    SELECT found.*
    FROM ahead_at_device!(
      (
        SELECT run, sync_id, ts_ns, dur_ns, before_ns, dev, place
        FROM own_wait
        WHERE place IS NOT NULL
        UNION ALL
        -- Where it is not known which of its devices it waits for, each counts.
        SELECT
          of!(own_wait, (run, sync_id, ts_ns, dur_ns, before_ns)),
          NULL, own_place.place
        FROM own_wait
        JOIN own_place USING (run, sync_id)
        WHERE own_wait.place IS NULL
      ),
      bio
    ) AS found
    LEFT JOIN own_bio USING (run, sync_id, bio_id)
    LEFT JOIN commit_bio USING (run, sync_id, bio_id)
    WHERE own_bio.bio_id IS NULL AND commit_bio.bio_id IS NULL
  ),
  -- A row for each bio that was ahead, and whose it is. `owner` is the process
  -- whose group counts, by which bystander_bio looks a missing one up; null
  -- where no group counts. `path` is the file of its request, `file` the one
  -- that the bio wrote.
  ahead_bio AS (
    SELECT
      of!(once, (run, bio_id)),
      CASE
        WHEN bio.sync_id IS NOT NULL THEN 'sync'
        WHEN bio.direction NOT IN ('write', 'flush') THEN bio.direction
        WHEN journal_thread.tid IS NOT NULL
        OR bio.commit_id IS NOT NULL THEN 'journal'
        ELSE 'background'
      END AS kind,
      of!(bio, (comm, process)),
      CASE
        WHEN bio.sync_id IS NOT NULL THEN COALESCE(bio.process, bio.comm, '')
        -- A journal commits for all groups.
        WHEN bio.direction IN ('write', 'flush')
        AND journal_thread.tid IS NOT NULL THEN NULL
        -- A flusher thread works for the groups of the writers, and has another
        -- one itself.
        WHEN bio.writers IS NOT NULL THEN bio.writers
        WHEN bio.comm LIKE 'kworker/%' THEN NULL
        ELSE COALESCE(bio.process, bio.comm, '')
      END AS owner,
      CASE
        WHEN bio.sync_id IS NULL
        AND bio.writers IS NOT NULL THEN bio.writers_cgroup
        ELSE bio.cgroup
      END AS cgroup,
      -- A request has its own thread and file.
      CASE WHEN bio.sync_id IS NULL THEN bio.writers END AS writers,
      sync.path AS path,
      bio.path AS file
    FROM (SELECT DISTINCT run, bio_id FROM ahead) AS once
    JOIN bio USING (run, bio_id)
    LEFT JOIN (
      SELECT DISTINCT run, tid FROM syncline_journal WHERE kind = 'commit'
    ) AS journal_thread USING (run, tid)
    LEFT JOIN syncline_sync AS sync USING (run, sync_id)
  ),
  -- The same, with a missing group inferred from others of the same name.
  bystander_bio AS (
    SELECT
      of!(ahead_bio, (run, bio_id, kind, comm, process)),
      CASE
        WHEN ahead_bio.owner IS NOT NULL THEN COALESCE(
          ahead_bio.cgroup, only_group.cgroup
        )
      END AS cgroup,
      of!(ahead_bio, (writers, path, file))
    FROM ahead_bio
    LEFT JOIN only_groups!() AS only_group
      ON only_group.run = ahead_bio.run
      AND only_group.process = ahead_bio.owner
  ),
  -- When each bystander was ahead, and when requests waited for their own bios
  -- and for those of their commits.
  delay AS (
    SELECT
      of!(ahead, (run, sync_id)),
      of!(bystander_bio, (kind, comm, process, cgroup, writers, path)),
      from_ns AS ts_ns,
      until_ns - from_ns AS dur_ns
    FROM ahead
    JOIN bystander_bio USING (run, bio_id)
    UNION ALL
    SELECT run, sync_id, kind, NULL, NULL, NULL, NULL, NULL, ts_ns, dur_ns
    FROM own_wait
  ),
  -- How long each request was delayed by each bystander, or waited for its own
  -- bios or its commits: an instant counts once. In each row of the result, the
  -- request with the longest such time has number 1.
  ranked AS (
    SELECT
      *,
      ROW_NUMBER() OVER (
        PARTITION BY run, kind, comm, process, cgroup, writers, path
        ORDER BY wall_ns DESC, sync_id
      ) AS number
    FROM wall_time!(
      delay,
      (run, sync_id, kind, comm, process, cgroup, writers, path)
    )
  ),
  -- What each bystander cost, summed over the requests.
  cost AS (
    SELECT
      of!(ranked, (run, kind, comm, process, cgroup, writers, path)),
      COUNT(*) AS syncs,
      CAST(SUM(wall_ns) AS BIGINT) AS ahead_ns,
      MAX(wall_ns) AS max_ns,
      MAX(CASE WHEN number = 1 THEN sync_id END) AS sync_id
    FROM ranked
    GROUP BY run, kind, comm, process, cgroup, writers, path
  ),
  -- The bios of each row of the result, each once. If several requests waited
  -- for a bio of a commit, MIN takes it as of others only if it is for all of
  -- them.
  each_bio AS (
    SELECT *, CAST(NULL AS BIGINT) AS of_others FROM bystander_bio
    UNION ALL
    SELECT run, bio_id, 'commit', NULL, NULL, NULL, NULL, NULL, NULL, others
    FROM (
      SELECT run, bio_id, MIN(of_others) AS others
      FROM commit_bio
      GROUP BY run, bio_id
    ) AS one
    UNION ALL
    SELECT run, bio_id, 'itself', NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM own_bio
  ),
  -- How many these are, and how much they wrote or read.
  amount AS (
    SELECT
      of!(each_bio, (run, kind, comm, process, cgroup, writers, path)),
      CASE
        WHEN COUNT(file) = COUNT(*)
        AND MIN(file) = MAX(file) THEN MIN(file)
      END AS file,
      COUNT(*) AS bios,
      COUNT(DISTINCT bio.tid) AS threads,
      SUM(bio.bytes) AS bytes,
      -- Bios of which nothing says whether they hold data of others.
      COUNT(*) - COUNT(of_others) AS unknown,
      SUM(of_others * bio.bytes) AS others_bytes
    FROM each_bio
    JOIN bio USING (run, bio_id)
    GROUP BY of!(each_bio, (run, kind, comm, process, cgroup, writers, path))
  )
SELECT
  of!(cost, (kind, comm, process, cgroup, writers)),
  COALESCE(cost.path, amount.file) AS path,
  amount.threads AS threads,
  cost.syncs AS syncs,
  total.syncs AS of_syncs,
  amount.bios AS bios,
  amount.bytes AS bytes,
  CASE amount.unknown WHEN 0 THEN amount.others_bytes END AS others_bytes,
  cost.ahead_ns AS ahead_ns,
  share!(cost.ahead_ns, total.dur_ns) AS share,
  cost.max_ns AS max_ns,
  cost.sync_id AS sync_id,
  cost.run AS run
FROM cost
JOIN total USING (run)
LEFT JOIN amount
  ON same!(amount, cost, (run, kind, comm, process, cgroup, writers, path))
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
