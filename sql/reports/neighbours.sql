-- Neighbours: who else used the device or the journal, and what that cost.
--
-- A row is a process in a control group, as a neighbour of all others: its cost
-- is the time in which syncs of the others waited while the device worked for
-- it. At each instant, a device works for one owner. If it has several bios,
-- that is the owner of the one that was issued last, because a large bio is
-- served in parts, and smaller ones go in between. While it has none, it is
-- held by the owner of the queued bio that it gets next. Where the issue of a
-- bio is not recorded, the device serves it after the bio that completes before
-- it, at the earliest from its submit on. The owner of a bio is the process
-- whose sync it belongs to; else the one that wrote the data; else the one
-- whose sync started the commit; else, where commits are not recorded, as on
-- xfs, the one whose sync waits for one. A bio for which none of these is known
-- counts for the thread that submitted it.
--
-- A sync waits in the phases queue, device, flush, cpu wait, completion,
-- earlier writeback, lock wait, in those of a commit, and in a piece of before
-- submit of at least a millisecond, which is a lock that the kernel does not
-- report, as f2fs has. While it runs, nobody delays it. Nobody delays it either
-- while the device writes the commit for which it waits: without the others, it
-- would wait for one of its own.
--
-- While nothing is at the device, the owner of kept data holds the threads and
-- the commits: the kernel keeps them for a limit of a control group, or until
-- the thread that writes them back has collected more. That counts for waits
-- for a commit, a lock or a CPU.
--
-- The cost is an estimate: it takes for granted that a sync would have been
-- shorter by what the device did for somebody else. low_ns and high_ns are
-- bounds. low_ns has only time in which the device worked for nobody but the
-- neighbour while a bio of the sync was queued, or while the sync waited for a
-- journal that had a bio in the queue. high_ns has all time of the syncs that
-- met the neighbour, except that in which the device worked for nobody but
-- themselves or what they need of a commit of their own. So it has time that
-- the neighbour took from their thread or their journal unseen. A sync has met
-- it if it had a bio or a sync within a second: what it cost while it only
-- computed or changed metadata is in neither. Both need the right owner of each
-- bio.
--
-- If the neighbour was quiet for a while, its cost is found in a second way:
-- the others' syncs while nobody but it was active are compared with those
-- while nobody was, threads of the kernel left out. That has what the neighbour
-- cost in any way, and also whatever else was different at that time, such as
-- reads that are not recorded.
--
-- A row of the kind unrecorded has the time in which a bio was queued for at
-- least a millisecond although nothing recorded was at its device, and it did
-- not wait for a flush before it, which only a device with a cache needs.
-- Either something that the recording lacks held the device (reads, another
-- partition, another guest), or the CPUs were too busy to hand the bio over. On
-- btrfs, that needs the copies of its metadata, which older recordings lack.
--
-- Columns:
--   kind       text   syncs: it syncs files itself. writes: it only writes.
--                     reads: it only reads. discards: it only discards or
--                     zeroes. metadata: its bios are of metadata or flushes;
--                     what it changed is not recorded, and makes commits of
--                     others longer. kernel: a thread of the kernel, for an
--                     unknown program. unrecorded: nothing recorded.
--   process    text   Name of the process; where that is not recorded, of the
--                     thread.
--   cgroup     text   Its control group. Null if it is not known.
--   syncs      count  Number of syncs of others that it delayed.
--   of_syncs   count  Number of syncs of others.
--   cost_ns    ns     Time in which it delayed them: the sum of its ways,
--                     without device_ns.
--   low_ns     ns     Lower bound of its cost. Null if it is unrecorded.
--   high_ns    ns     Upper bound of what it cost the syncs that met it. Null
--                     if it is unrecorded, and for metadata.
--   share      share  Part of the time of the others' syncs that is cost_ns.
--   compared_ns  ns   The cost by comparison, below 0 if the others' syncs were
--                     shorter while it was active. Null unless 20 syncs of a
--                     process met nobody but it, and 20 met nobody.
--   compared_error_ns  ns  Two standard errors of compared_ns, if the syncs do
--                     not depend on each other.
--   quiet_syncs  count  Number of syncs of others that met nobody: nobody had a
--                     bio or a sync in flight within a second.
--   queue_ns   ns     Way: bios of the others were queued, or they waited for
--                     earlier writeback.
--   device_ns  ns     Its bios were issued after those of the others, and were
--                     at the device together with them. A device that serves
--                     several at once may lose nothing by that.
--   commit_locking_ns  ns   Way: a commit waited until open handles were
--                     closed. It is inferred that the owner holds them for whom
--                     the device works.
--   commit_data_ns  ns   Way: the others waited for a commit, and the device
--                     worked for its data or its commits; or for a lock.
--   cache_flush_ns  ns   Way: the others waited for a cache flush.
--   cpu_ns     ns     Way: the others waited for a CPU, or for a worker of the
--                     file system. It is inferred that these were busy for the
--                     owner for whom the device works.
--   bios       count  Number of its bios.
--   bytes      bytes  Their size.
--   sync_id    id     The sync that it delayed most.
--   run        text   Name of the run, if the input holds several.
WITH RECURSIVE
  request AS MATERIALIZED (
    SELECT
      run, sync_id,
      COALESCE(process, comm, '') AS process,
      cgroup,
      COALESCE(process, comm, '') || ' ' || COALESCE(cgroup, '') AS owner,
      op,
      COALESCE(dev, '') AS dev,
      COALESCE(fs, '') AS fs,
      start_ns,
      ts_ns + dur_ns AS end_ns
    FROM syncline_sync
  ),
  bio AS MATERIALIZED (
    SELECT
      bio.run AS run,
      bio.bio_id AS bio_id,
      -- Where it is issued.
      COALESCE(bio.below, bio.dev) AS place,
      bio.sync_id AS sync_id,
      bio.direction AS direction,
      bio.bytes AS bytes,
      CASE
        WHEN bio.rwbs LIKE '%M%' THEN 1
        WHEN bio.direction = 'flush' THEN 1
        ELSE 0
      END AS is_metadata,
      bio.commit_id IS NOT NULL AS is_log,
      CASE
        WHEN bio.rwbs LIKE 'F%'
        AND bio.direction <> 'flush'
        AND COALESCE(cache.value, 'unknown') <> 'write through' THEN 1
        ELSE 0
      END AS has_preflush,
      bio.ts_ns AS submit_ns,
      bio.queue_ns AS queue_ns,
      bio.ts_ns + bio.dur_ns AS complete_ns,
      CASE
        WHEN request.sync_id IS NOT NULL THEN 'sync'
        WHEN bio.writers IS NOT NULL THEN 'data'
        WHEN starter.sync_id IS NOT NULL THEN 'commit'
        WHEN bio.comm LIKE 'kworker/%'
        OR bio.comm LIKE 'jbd2/%'
        OR bio.comm LIKE 'xfsaild/%'
        OR bio.comm LIKE 'btrfs-%'
        OR bio.comm LIKE 'f2fs%' THEN 'kernel'
        ELSE 'process'
      END AS part,
      COALESCE(
        request.process, bio.writers, starter.process,
        CASE WHEN bio.comm LIKE 'kworker/%' THEN 'kworker' END,
        bio.process, bio.comm, ''
      ) AS process,
      CASE
        WHEN request.sync_id IS NOT NULL THEN request.cgroup
        WHEN bio.writers IS NOT NULL THEN bio.writers_cgroup
        WHEN starter.sync_id IS NOT NULL THEN starter.cgroup
        ELSE bio.cgroup
      END AS cgroup
    FROM syncline_bio AS bio
    LEFT JOIN request ON request.run = bio.run AND request.sync_id = bio.sync_id
    LEFT JOIN syncline_journal AS journal
      ON journal.run = bio.run
      AND journal.commit_id = bio.commit_id
    LEFT JOIN request AS starter
      ON starter.run = journal.run
      AND starter.sync_id = journal.sync_id
    LEFT JOIN syncline_meta AS cache
      ON cache.run = bio.run
      AND cache.key = 'device_cache.' || COALESCE(bio.below, bio.dev)
    WHERE bio.dev IS NOT NULL AND bio.dur_ns IS NOT NULL
  ),
  -- The device of a file system: where most bios of its syncs went.
  home AS (
    SELECT
      request.run AS run,
      request.dev AS dev,
      bio.place AS place,
      ROW_NUMBER() OVER (
        PARTITION BY request.run, request.dev
        ORDER BY COUNT(*) DESC, bio.place
      ) AS number
    FROM request
    JOIN bio ON bio.run = request.run AND bio.sync_id = request.sync_id
    GROUP BY request.run, request.dev, bio.place
  ),
  -- The syncs whose wait is meant: all, or those that a filter keeps.
  meant AS (SELECT run, sync_id FROM syncline_sync),
  -- The syncs whose length is known: those that others may delay.
  victim AS MATERIALIZED (
    SELECT
      request.run AS run,
      request.sync_id AS sync_id,
      request.process AS process,
      request.cgroup AS cgroup,
      request.owner AS owner,
      request.op AS op,
      request.fs AS fs,
      request.start_ns AS start_ns,
      request.end_ns AS end_ns,
      COALESCE(home.place, request.dev) AS place,
      meant.sync_id IS NOT NULL AS is_meant
    FROM request
    LEFT JOIN meant
      ON meant.run = request.run
      AND meant.sync_id = request.sync_id
    LEFT JOIN home
      ON home.run = request.run
      AND home.dev = request.dev
      AND home.number = 1
    WHERE request.start_ns IS NOT NULL AND request.end_ns IS NOT NULL
  ),
  -- Waits for a log or a commit that no row of syncline_journal describes.
  log_wait AS MATERIALIZED (
    SELECT
      victim.run AS run,
      victim.place AS place,
      victim.process AS process,
      victim.cgroup AS cgroup,
      wait.ts_ns AS from_ns,
      wait.ts_ns + wait.dur_ns AS until_ns
    FROM victim
    JOIN syncline_wait AS wait
      ON wait.run = victim.run
      AND wait.sync_id = victim.sync_id
    WHERE wait.commit_id IS NULL AND wait.wait <> 'flush'
  ),
  -- A bio of a kernel thread is for such a wait if it is submitted meanwhile.
  -- reached_ns is the latest end of the waits that have begun.
  log_moment AS (
    SELECT
      run, place,
      from_ns AS at_ns,
      until_ns,
      CAST(NULL AS BIGINT) AS bio_id
    FROM log_wait
    UNION ALL
    SELECT run, place, submit_ns, NULL, bio_id FROM bio WHERE part = 'kernel'
  ),
  log_reach AS (
    SELECT
      run, place, bio_id, at_ns,
      MAX(until_ns) OVER (
        PARTITION BY run, place
        ORDER BY at_ns, COALESCE(bio_id, 0)
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS reached_ns
    FROM log_moment
  ),
  log_bio AS MATERIALIZED (
    SELECT
      log_reach.run AS run,
      log_reach.bio_id AS bio_id,
      MIN(log_wait.process) AS process,
      MIN(log_wait.cgroup) AS cgroup
    FROM log_reach
    JOIN log_wait
      ON log_wait.run = log_reach.run
      AND log_wait.place = log_reach.place
      AND log_wait.until_ns = log_reach.reached_ns
    WHERE
      log_reach.bio_id IS NOT NULL
      AND log_reach.reached_ns > log_reach.at_ns
    GROUP BY log_reach.run, log_reach.bio_id
  ),
  -- Where no issue is recorded, the device serves one bio after the other, in
  -- the order of their completions.
  unissued AS (
    SELECT
      run, bio_id,
      LAG(complete_ns) OVER (
        PARTITION BY run, place
        ORDER BY complete_ns, bio_id
      ) AS before_ns
    FROM bio
    WHERE queue_ns IS NULL
  ),
  named AS MATERIALIZED (
    SELECT
      bio.run AS run,
      bio.bio_id AS bio_id,
      bio.place AS place,
      bio.direction AS direction,
      bio.bytes AS bytes,
      bio.is_metadata AS is_metadata,
      bio.submit_ns AS submit_ns,
      CASE
        WHEN bio.queue_ns IS NOT NULL THEN bio.submit_ns + bio.queue_ns
        WHEN unissued.before_ns > bio.submit_ns THEN unissued.before_ns
        ELSE bio.submit_ns
      END AS issue_ns,
      bio.complete_ns AS complete_ns,
      bio.has_preflush AS has_preflush,
      CASE WHEN log_bio.bio_id IS NOT NULL THEN 'commit' ELSE part END AS part,
      bio.is_log
      OR log_bio.bio_id IS NOT NULL AS is_log,
      COALESCE(log_bio.process, bio.process) AS process,
      CASE
        WHEN log_bio.bio_id IS NOT NULL THEN log_bio.cgroup
        WHEN part <> 'kernel' THEN bio.cgroup
      END AS cgroup
    FROM bio
    LEFT JOIN log_bio ON log_bio.run = bio.run AND log_bio.bio_id = bio.bio_id
    LEFT JOIN unissued
      ON unissued.run = bio.run
      AND unissued.bio_id = bio.bio_id
  ),
  -- Numbers are faster than names: of who owns bios or syncs, and of devices.
  party AS MATERIALIZED (
    SELECT
      run, owner,
      MIN(process) AS process,
      MIN(cgroup) AS cgroup,
      MIN(CASE WHEN part = 'kernel' THEN 1 ELSE 0 END) AS is_kernel,
      MIN(CASE WHEN direction = 'read' THEN 1 ELSE 0 END) AS is_read,
      MIN(direction IN ('discard', 'zeroes')) AS is_discard,
      MIN(CASE WHEN part = 'process' THEN is_metadata ELSE 0 END) AS is_meta,
      SUM(CASE WHEN part <> 'none' THEN 1 ELSE 0 END) AS bios,
      SUM(bytes) AS bytes,
      ROW_NUMBER() OVER (ORDER BY run, owner) AS party
    FROM (
      SELECT
        run,
        process || ' ' || COALESCE(cgroup, '') AS owner,
        process, cgroup, part, direction, is_metadata, bytes
      FROM named
      UNION ALL
      SELECT run, owner, NULL, NULL, 'none', 'none', 0, NULL FROM victim
    ) AS everyone
    GROUP BY run, owner
  ),
  spot AS MATERIALIZED (
    SELECT run, place, ROW_NUMBER() OVER (ORDER BY run, place) AS spot
    FROM named
    GROUP BY run, place
  ),
  owned AS MATERIALIZED (
    SELECT
      spot.spot AS spot,
      party.party AS party,
      named.part AS part,
      named.is_log AS is_log,
      named.is_metadata AS is_metadata,
      named.has_preflush AS has_preflush,
      named.submit_ns AS submit_ns,
      named.issue_ns AS issue_ns,
      named.complete_ns AS complete_ns
    FROM named
    JOIN spot ON spot.run = named.run AND spot.place = named.place
    JOIN party
      ON party.run = named.run
      AND party.owner = named.process || ' ' || COALESCE(named.cgroup, '')
  ),
  -- btrfs may write each block of metadata twice, for a sync and once more. If
  -- the copies are not recorded, the device looks idle while it has them.
  copied AS (
    SELECT spot
    FROM owned
    GROUP BY spot
    HAVING
      SUM(CASE WHEN part = 'process' THEN is_metadata ELSE 0 END)
      >= SUM(CASE WHEN part = 'sync' THEN is_metadata ELSE 0 END)
  ),
  waiting AS MATERIALIZED (
    SELECT
      ROW_NUMBER() OVER (ORDER BY victim.run, victim.sync_id) AS waiting,
      victim.run AS run,
      victim.sync_id AS sync_id,
      spot.spot AS spot,
      party.party AS party,
      victim.op AS op,
      CASE
        WHEN victim.fs <> 'btrfs' THEN 1
        WHEN copied.spot IS NOT NULL THEN 1
        ELSE 0
      END AS may_be_stalled,
      victim.start_ns AS start_ns,
      victim.end_ns AS end_ns,
      victim.is_meant AS is_meant
    FROM victim
    JOIN party ON party.run = victim.run AND party.owner = victim.owner
    LEFT JOIN spot ON spot.run = victim.run AND spot.place = victim.place
    LEFT JOIN copied ON copied.spot = spot.spot
  ),
  -- Moments at which a bio is submitted, issued or completed. Data are kept, by
  -- the thread that writes many, or by a limit of its control group, before the
  -- device could get them.
  edge AS (
    SELECT
      spot,
      submit_ns AS at_ns,
      CASE WHEN part = 'data' THEN 0 ELSE 1 END AS queued,
      CASE WHEN part = 'data' THEN 1 ELSE 0 END AS kept,
      CASE WHEN is_log THEN 1 ELSE 0 END AS log_queued,
      0 AS issued,
      0 AS log_issued,
      0 AS party,
      0 AS square,
      CASE WHEN part = 'data' THEN NULL ELSE issue_ns END AS issue_ns,
      CASE WHEN part = 'data' THEN issue_ns END AS kept_issue_ns,
      CAST(NULL AS BIGINT) AS complete_ns
    FROM owned
    UNION ALL
    SELECT
      spot, issue_ns,
      CASE WHEN part = 'data' THEN 0 ELSE -1 END,
      CASE WHEN part = 'data' THEN -1 ELSE 0 END,
      CASE WHEN is_log THEN -1 ELSE 0 END,
      1,
      CASE WHEN part <> 'data' AND is_log THEN 1 ELSE 0 END,
      party,
      party * party,
      NULL, NULL, complete_ns
    FROM owned
    UNION ALL
    SELECT
      spot, complete_ns, 0, 0, 0, -1,
      CASE WHEN part <> 'data' AND is_log THEN -1 ELSE 0 END,
      -party,
      -party * party,
      NULL, NULL, NULL
    FROM owned
  ),
  moment AS (
    SELECT
      spot, at_ns,
      CAST(SUM(queued) AS BIGINT) AS queued,
      CAST(SUM(kept) AS BIGINT) AS kept,
      CAST(SUM(log_queued) AS BIGINT) AS log_queued,
      CAST(SUM(issued) AS BIGINT) AS issued,
      CAST(SUM(log_issued) AS BIGINT) AS log_issued,
      CAST(SUM(party) AS BIGINT) AS party,
      CAST(SUM(square) AS BIGINT) AS square,
      MAX(issue_ns) AS issue_ns,
      MAX(kept_issue_ns) AS kept_issue_ns,
      MAX(complete_ns) AS complete_ns,
      MAX(CASE WHEN complete_ns IS NOT NULL THEN at_ns END) AS issued_ns
    FROM edge
    GROUP BY spot, at_ns
  ),
  -- From each moment to the next one, how many bios are queued and at the
  -- device; when the last bio was issued; when the last one completes of those
  -- that were issued; and when the last one is issued of those that are queued.
  -- All at the device are of one party if the square of the sum of its numbers
  -- is their count times the sum of their squares.
  span AS MATERIALIZED (
    SELECT
      spot,
      at_ns AS from_ns,
      LEAD(at_ns) OVER in_order AS until_ns,
      SUM(queued) OVER in_order AS queued,
      SUM(kept) OVER in_order AS kept,
      SUM(log_queued) OVER in_order AS log_queued,
      SUM(issued) OVER in_order AS issued,
      SUM(log_issued) OVER in_order AS log_issued,
      SUM(party) OVER in_order AS parties,
      SUM(square) OVER in_order AS squares,
      MAX(issue_ns) OVER in_order AS issue_ns,
      MAX(kept_issue_ns) OVER in_order AS kept_issue_ns,
      MAX(issued_ns) OVER in_order AS last_ns,
      MAX(complete_ns) OVER in_order AS complete_ns
    FROM moment
    WINDOW in_order AS (PARTITION BY spot ORDER BY at_ns)
  ),
  -- Bios of one request of the block layer are issued and completed together.
  completed AS (
    SELECT
      spot, complete_ns,
      MIN(party) AS party,
      MIN(CASE WHEN part <> 'data' AND is_log THEN 1 ELSE 0 END) AS of_log
    FROM owned
    GROUP BY spot, complete_ns
  ),
  last_issued AS (
    SELECT spot, issue_ns, MAX(complete_ns) AS complete_ns
    FROM owned
    GROUP BY spot, issue_ns
  ),
  next_issued AS (
    SELECT
      spot, issue_ns,
      MIN(party) AS party,
      MIN(CASE WHEN is_log THEN 1 ELSE 0 END) AS of_log,
      MAX(has_preflush) AS has_preflush
    FROM owned
    WHERE part <> 'data'
    GROUP BY spot, issue_ns
  ),
  next_kept AS (
    SELECT spot, issue_ns, MIN(party) AS party
    FROM owned
    WHERE part = 'data'
    GROUP BY spot, issue_ns
  ),
  -- For whom a device works, and before that, whose bio it gets next. While
  -- nothing recorded is at the device and a bio is queued for a flush before it
  -- (PREFLUSH), the device empties its cache. If the bio is queued for a
  -- millisecond without that, something that is not recorded may hold the
  -- device.
  used AS (
    SELECT
      span.spot AS spot,
      span.from_ns AS from_ns,
      span.until_ns AS until_ns,
      CASE
        WHEN parties * parties = issued * squares
        AND issued > 0 THEN CAST(CAST(parties AS DOUBLE) / issued AS BIGINT)
        WHEN issued > 0 THEN completed.party
        WHEN queued > 0 THEN next_issued.party
        WHEN kept > 0 THEN next_kept.party
      END AS party,
      CASE
        WHEN parties * parties = issued * squares
        AND issued > 0 THEN 1
        ELSE 0
      END AS is_sole,
      CASE
        WHEN parties * parties = issued * squares
        AND issued > 0
        AND log_queued > 0 THEN 1
        ELSE 0
      END AS is_log,
      CASE
        WHEN issued = 0
        AND queued > 0 THEN next_issued.of_log
        WHEN issued = 0 THEN 0
        WHEN parties * parties <> issued * squares THEN completed.of_log
        WHEN log_issued = issued THEN 1
        ELSE 0
      END AS of_log,
      CASE
        WHEN issued > 0 THEN 'working'
        WHEN queued = 0 THEN 'kept'
        WHEN next_issued.has_preflush = 1 THEN 'working'
        WHEN span.until_ns - span.from_ns < 1000000 THEN 'working'
        ELSE 'queued'
      END AS device
    FROM span
    LEFT JOIN last_issued
      ON last_issued.spot = span.spot
      AND last_issued.issue_ns = span.last_ns
    LEFT JOIN completed
      ON completed.spot = span.spot
      AND completed.complete_ns
      = CASE
        WHEN last_issued.complete_ns > span.from_ns THEN last_issued.complete_ns
        ELSE span.complete_ns
      END
    LEFT JOIN next_issued
      ON next_issued.spot = span.spot
      AND next_issued.issue_ns = span.issue_ns
    LEFT JOIN next_kept
      ON next_kept.spot = span.spot
      AND next_kept.issue_ns = span.kept_issue_ns
  ),
  -- Who holds a device, and what that means: it works for the party; it is
  -- idle, and others wait for the party; it is stalled, and the party waits for
  -- something that is not recorded. A bio that is queued for long is both of
  -- the latter. The spans of a state do not overlap.
  state AS (
    SELECT 'working' AS device, 'working' AS state
    UNION ALL
    SELECT 'kept', 'idle'
    UNION ALL
    SELECT 'queued', 'idle'
    UNION ALL
    SELECT 'queued', 'stalled'
  ),
  hold AS (
    SELECT
      used.spot AS spot,
      used.party AS party,
      state.state AS state,
      CASE WHEN state.state = 'stalled' THEN 0 ELSE used.of_log END AS of_log,
      used.from_ns AS from_ns,
      used.until_ns AS until_ns,
      used.until_ns - used.from_ns AS ns,
      used.is_sole AS is_sole,
      used.is_log AS is_log
    FROM used
    JOIN state ON state.device = used.device
    WHERE used.party IS NOT NULL
  ),
  -- How long the device was held until the end of each span: in all, by nobody
  -- but one party, and by nobody but one while a bio of the journal was queued.
  held AS MATERIALIZED (
    SELECT
      DENSE_RANK() OVER (ORDER BY spot, party, state, of_log) AS holder,
      spot, party, state, of_log, from_ns, until_ns, is_sole, is_log,
      CAST(SUM(ns) OVER in_order AS BIGINT) AS ns,
      CAST(SUM(ns * is_sole) OVER in_order AS BIGINT) AS sole_ns,
      CAST(SUM(ns * is_log) OVER in_order AS BIGINT) AS log_ns
    FROM hold
    WINDOW
      in_order AS (
        PARTITION BY spot, party, state, of_log
        ORDER BY from_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      )
  ),
  holder AS MATERIALIZED (
    SELECT DISTINCT holder, spot, party, state, of_log FROM held
  ),
  -- What a sync waits for, as a number: 1 its own bios in the queue, 2 earlier
  -- writeback, 3 the device, 4 a cache flush, 5 the locks of a commit, 6 the
  -- rest of a commit, a log or a lock, 7 a CPU or a worker.
  piece AS MATERIALIZED (
    SELECT
      waiting.waiting AS waiting,
      waiting.spot AS spot,
      waiting.party AS party,
      CASE phase.phase
        WHEN 'queue' THEN 1
        WHEN 'writeback' THEN 2
        WHEN 'earlier writeback' THEN 2
        WHEN 'device' THEN 3
        WHEN 'flush' THEN 4
        WHEN 'commit locking' THEN 5
        WHEN 'cpu wait' THEN 7
        WHEN 'completion' THEN 7
        WHEN 'commit start' THEN 8
        WHEN 'commit flushing' THEN 8
        WHEN 'commit logging' THEN 8
        ELSE 6
      END AS way,
      phase.ts_ns AS from_ns,
      phase.ts_ns + phase.dur_ns AS until_ns
    FROM waiting
    JOIN syncline_phase AS phase
      ON phase.run = waiting.run
      AND phase.sync_id = waiting.sync_id
    WHERE
      waiting.is_meant
      AND phase.dur_ns > 0
      AND phase.phase NOT IN ('submit', 'after completion', 'residue')
      AND (phase.phase <> 'before submit' OR phase.dur_ns >= 1000000)
  ),
  -- Where a piece of a sync ends and the next one begins: their ways, or 0.
  side AS (SELECT 'end' AS side UNION ALL SELECT 'begin'),
  border AS MATERIALIZED (
    SELECT
      waiting,
      CASE side WHEN 'end' THEN until_ns ELSE from_ns END AS at_ns,
      SUM(CASE side WHEN 'end' THEN way ELSE 0 END) AS ended,
      SUM(CASE side WHEN 'begin' THEN way ELSE 0 END) AS begun
    FROM piece
    CROSS JOIN side
    GROUP BY waiting, at_ns
  ),
  -- Times are cut into slots of 2^26 ns (67 ms). Only who holds the device in
  -- the same slot can delay a sync.
  held_slot AS (
    SELECT DISTINCT
      holder, spot,
      CASE state WHEN 'stalled' THEN party END AS delays_only,
      CASE state WHEN 'idle' THEN party END AS delays_not,
      from_ns >> 26 AS slot,
      until_ns >> 26 AS last_slot
    FROM held
    UNION ALL
    SELECT holder, spot, delays_only, delays_not, slot + 1, last_slot
    FROM held_slot
    WHERE slot < last_slot
  ),
  waiting_slot AS (
    SELECT
      waiting, spot, party,
      CASE may_be_stalled WHEN 1 THEN party END AS stalled_by,
      start_ns >> 26 AS slot,
      end_ns >> 26 AS last_slot
    FROM waiting
    WHERE is_meant
    UNION ALL
    SELECT waiting, spot, party, stalled_by, slot + 1, last_slot
    FROM waiting_slot
    WHERE slot < last_slot
  ),
  pair AS (
    SELECT DISTINCT held_slot.holder, waiting_slot.waiting
    FROM held_slot
    JOIN waiting_slot
      ON waiting_slot.spot = held_slot.spot
      AND waiting_slot.slot = held_slot.slot
    WHERE
      (held_slot.delays_only IS NULL
      OR held_slot.delays_only = waiting_slot.stalled_by)
      AND COALESCE(held_slot.delays_not, 0) <> waiting_slot.party
  ),
  -- The last span that has begun at each border.
  reached AS (
    SELECT
      *,
      MAX(from_ns) OVER (
        PARTITION BY holder
        ORDER BY at_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS held_ns
    FROM (
      SELECT
        pair.holder AS holder,
        border.waiting AS waiting,
        border.ended AS ended,
        border.begun AS begun,
        border.at_ns AS at_ns,
        CAST(NULL AS BIGINT) AS from_ns
      FROM pair
      JOIN border ON border.waiting = pair.waiting
      UNION ALL
      SELECT holder, NULL, NULL, NULL, from_ns, from_ns FROM held
    ) AS moments
  ),
  -- How long the device was held until each border.
  until_border AS (
    SELECT
      holder, waiting, ended, begun,
      ns - rest_ns AS ns,
      sole_ns - rest_ns * is_sole AS sole_ns,
      log_ns - rest_ns * is_log AS log_ns
    FROM (
      SELECT
        reached.holder AS holder,
        reached.waiting AS waiting,
        reached.ended AS ended,
        reached.begun AS begun,
        held.ns AS ns,
        held.sole_ns AS sole_ns,
        held.log_ns AS log_ns,
        held.is_sole AS is_sole,
        held.is_log AS is_log,
        CASE
          WHEN held.until_ns > reached.at_ns THEN held.until_ns - reached.at_ns
          ELSE 0
        END AS rest_ns
      FROM reached
      JOIN held
        ON held.holder = reached.holder
        AND held.from_ns = reached.held_ns
      WHERE reached.waiting IS NOT NULL
    ) AS at_border
  ),
  -- A piece has what was held until its end, less what was until its begin.
  passed AS (
    SELECT
      holder, waiting,
      CASE side WHEN 'end' THEN ended ELSE begun END AS way,
      CASE side WHEN 'end' THEN ns ELSE -ns END AS ns,
      CASE side WHEN 'end' THEN sole_ns ELSE -sole_ns END AS sole_ns,
      CASE side WHEN 'end' THEN log_ns ELSE -log_ns END AS log_ns
    FROM until_border
    CROSS JOIN side
  ),
  delay AS MATERIALIZED (
    SELECT
      holder, waiting,
      SUM(CASE WHEN way IN (1, 2) THEN ns ELSE 0 END) AS queue_ns,
      SUM(CASE WHEN way = 3 THEN ns ELSE 0 END) AS device_ns,
      SUM(CASE WHEN way = 4 THEN ns ELSE 0 END) AS emptying_ns,
      SUM(CASE WHEN way = 5 THEN ns ELSE 0 END) AS locking_ns,
      SUM(CASE WHEN way = 6 THEN ns ELSE 0 END) AS wait_ns,
      SUM(CASE WHEN way = 7 THEN ns ELSE 0 END) AS cpu_ns,
      SUM(CASE WHEN way = 8 THEN ns ELSE 0 END) AS commit_ns,
      SUM(CASE WHEN way = 1 THEN sole_ns ELSE 0 END) AS sole_queue_ns,
      SUM(CASE WHEN way = 3 THEN sole_ns ELSE 0 END) AS own_ns,
      SUM(CASE WHEN way = 6 THEN log_ns ELSE 0 END) AS sole_wait_ns,
      SUM(CASE WHEN way = 8 THEN log_ns ELSE 0 END) AS sole_commit_ns
    FROM passed
    GROUP BY holder, waiting
  ),
  -- A party delays others. While the device works for nobody else, its own
  -- bios there are delayed by nobody. If a bio of its syncs waits and nothing
  -- recorded holds the device, that is the reason. While data of a neighbour
  -- are kept, or its bio is next for long, commits, locks and threads wait for
  -- it, and the device does not. Writing the commit that a sync waits for is
  -- for that sync, too.
  of_holder AS (
    SELECT
      run,
      CASE WHEN is_stalled = 1 THEN 0 ELSE party END AS party,
      sync_id,
      queue_ns * (1 - is_idle) AS queue_ns,
      device_ns * (1 - is_idle) * (1 - is_stalled) AS device_ns,
      emptying_ns * (1 - is_idle) AS emptying_ns,
      locking_ns,
      wait_ns + commit_ns * (1 - of_log) AS commit_ns,
      cpu_ns * (1 - is_stalled) AS cpu_ns,
      sole_queue_ns + sole_wait_ns + sole_commit_ns * (1 - of_log) AS sure_ns
    FROM (
      SELECT
        delay.*,
        waiting.run AS run,
        waiting.sync_id AS sync_id,
        holder.party AS party,
        holder.of_log AS of_log,
        CASE holder.state WHEN 'idle' THEN 1 ELSE 0 END AS is_idle,
        CASE holder.state WHEN 'stalled' THEN 1 ELSE 0 END AS is_stalled
      FROM delay
      JOIN holder ON holder.holder = delay.holder
      JOIN waiting ON waiting.waiting = delay.waiting
      WHERE
        CASE
          WHEN holder.state = 'stalled' THEN holder.party = waiting.party
          ELSE holder.party <> waiting.party
        END
    ) AS held_up
  ),
  -- Who used the device of syncs of others has a row even if it delayed none.
  present AS (
    SELECT DISTINCT party.run AS run, holder.party AS party
    FROM holder
    JOIN party ON party.party = holder.party
    JOIN (SELECT DISTINCT spot, party FROM waiting WHERE is_meant) AS other
      ON other.spot = holder.spot
      AND other.party <> holder.party
    WHERE holder.state <> 'stalled'
  ),
  of_sync AS (
    SELECT
      run, party, sync_id,
      SUM(queue_ns) AS queue_ns,
      SUM(device_ns) AS device_ns,
      SUM(locking_ns) AS locking_ns,
      SUM(commit_ns) AS commit_ns,
      SUM(emptying_ns) AS emptying_ns,
      SUM(cpu_ns) AS cpu_ns,
      SUM(sure_ns) AS sure_ns,
      SUM(queue_ns + emptying_ns + locking_ns + commit_ns + cpu_ns) AS ns
    FROM (
      SELECT * FROM of_holder
      UNION ALL
      SELECT run, party, NULL, 0, 0, 0, 0, 0, 0, 0 FROM present
    ) AS each_holder
    GROUP BY run, party, sync_id
  ),
  cost AS (
    SELECT
      run, party,
      SUM(CASE WHEN ns > 0 THEN 1 ELSE 0 END) AS syncs,
      MIN(CASE WHEN ns > 0 AND number = 1 THEN sync_id END) AS sync_id,
      SUM(ns) AS ns,
      SUM(sure_ns) AS sure_ns,
      SUM(queue_ns) AS queue_ns,
      SUM(device_ns) AS device_ns,
      SUM(locking_ns) AS locking_ns,
      SUM(commit_ns) AS commit_ns,
      SUM(emptying_ns) AS emptying_ns,
      SUM(cpu_ns) AS cpu_ns
    FROM (
      SELECT
        *,
        ROW_NUMBER() OVER (
          PARTITION BY run, party
          ORDER BY ns DESC, sync_id NULLS LAST
        ) AS number
      FROM of_sync
    ) AS costliest_first
    GROUP BY run, party
  ),
  -- How long the device worked for nobody but a sync.
  own_device AS (
    SELECT delay.waiting AS waiting, SUM(delay.own_ns) AS ns
    FROM delay
    JOIN holder ON holder.holder = delay.holder
    JOIN waiting ON waiting.waiting = delay.waiting
    WHERE holder.state = 'working' AND holder.party = waiting.party
    GROUP BY delay.waiting
  ),
  -- How long it served nothing but what a sync needed of its own commit.
  own_commit AS MATERIALIZED (SELECT * FROM own_commit_time!()),
  -- When each party was active: its bios and syncs, and gaps of up to a second
  -- between them.
  activity AS (
    SELECT party, submit_ns AS from_ns, complete_ns AS until_ns FROM owned
    UNION ALL
    SELECT party, start_ns, end_ns FROM waiting
  ),
  activity_reach AS (
    SELECT
      *,
      MAX(until_ns) OVER (
        PARTITION BY party
        ORDER BY from_ns, until_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ns
    FROM activity
  ),
  -- Its active times begin where the gap before is longer.
  active AS MATERIALIZED (
    SELECT
      party, from_ns,
      LEAD(reached_ns) OVER (PARTITION BY party ORDER BY from_ns) AS until_ns
    FROM activity_reach
    WHERE reached_ns IS NULL OR from_ns - reached_ns > 1000000000
  ),
  last_active AS (
    SELECT party, MAX(until_ns) AS until_ns FROM activity GROUP BY party
  ),
  -- Each sync of the others, with the end of the last active time that began
  -- before the sync ended.
  meeting AS (
    SELECT
      active.party AS party,
      CAST(NULL AS BIGINT) AS waiting,
      active.from_ns AS at_ns,
      COALESCE(active.until_ns, last_active.until_ns) AS until_ns
    FROM active
    JOIN last_active ON last_active.party = active.party
    UNION ALL
    SELECT neighbour.party, waiting.waiting, waiting.end_ns, NULL
    FROM (SELECT DISTINCT spot, party FROM owned) AS neighbour
    JOIN waiting
      ON waiting.spot = neighbour.spot
      AND waiting.party <> neighbour.party
      AND waiting.is_meant
  ),
  met AS (
    SELECT
      party, waiting,
      MAX(until_ns) OVER (
        PARTITION BY party
        ORDER BY at_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS active_ns
    FROM meeting
  ),
  met_sync AS MATERIALIZED (
    SELECT
      met.party AS party,
      met.waiting AS waiting,
      CASE WHEN party.is_kernel = 1 THEN 0 ELSE 1 END AS counts,
      CASE WHEN met.active_ns > waiting.start_ns THEN 1 ELSE 0 END AS is_active
    FROM met
    JOIN waiting ON waiting.waiting = met.waiting
    JOIN party ON party.party = met.party
  ),
  -- How many others than threads of the kernel a sync met.
  crowd AS (
    SELECT waiting, SUM(counts * is_active) AS others
    FROM met_sync
    GROUP BY waiting
  ),
  compared_sync AS (
    SELECT
      met_sync.party AS party,
      waiting.party AS victim,
      waiting.op AS op,
      is_active,
      CASE WHEN crowd.others = is_active * counts THEN is_active END AS is_met,
      waiting.end_ns - waiting.start_ns AS ns,
      -- Squares of ns would be too large.
      (waiting.end_ns - waiting.start_ns) / 1000.0 AS us,
      waiting.end_ns - waiting.start_ns - COALESCE(own_device.ns, 0)
      - COALESCE(own_commit.ns, 0) AS most_ns
    FROM met_sync
    JOIN waiting ON waiting.waiting = met_sync.waiting
    JOIN crowd ON crowd.waiting = met_sync.waiting
    LEFT JOIN own_device ON own_device.waiting = met_sync.waiting
    LEFT JOIN own_commit
      ON own_commit.run = waiting.run
      AND own_commit.sync_id = waiting.sync_id
  ),
  mean AS (
    SELECT
      party, victim, op,
      SUM(is_active) AS syncs,
      SUM(CASE is_met WHEN 1 THEN 1 ELSE 0 END) AS met_syncs,
      SUM(CASE is_met WHEN 0 THEN 1 ELSE 0 END) AS quiet_syncs,
      SUM(is_active * most_ns) AS most_ns,
      AVG(CASE is_met WHEN 1 THEN ns END) AS ns,
      AVG(CASE is_met WHEN 0 THEN ns END) AS quiet_ns,
      AVG(CASE is_met WHEN 1 THEN us END) AS us,
      AVG(CASE is_met WHEN 0 THEN us END) AS quiet_us,
      AVG(CASE is_met WHEN 1 THEN us * us END) AS square,
      AVG(CASE is_met WHEN 0 THEN us * us END) AS quiet_square
    FROM compared_sync
    GROUP BY party, victim, op
  ),
  -- The variance of the difference of the means, in squares of us.
  difference AS (
    SELECT
      *,
      ns - quiet_ns AS longer_ns,
      CASE
        WHEN met_syncs >= 20
        AND quiet_syncs >= 20 THEN (square - us * us) / met_syncs
        + (quiet_square - quiet_us * quiet_us) / quiet_syncs
      END AS variance
    FROM mean
  ),
  compared AS (
    SELECT
      party,
      SUM(quiet_syncs) AS quiet_syncs,
      SUM(most_ns) AS most_ns,
      SUM(CASE WHEN variance IS NOT NULL THEN syncs * longer_ns END) AS ns,
      SQRT(
        SUM(
          CAST(syncs AS DOUBLE) * syncs
          * CASE WHEN variance < 0 THEN 0 ELSE variance END
        )
      )
      * 2000 AS error_ns
    FROM difference
    GROUP BY party
  ),
  own AS (
    SELECT
      run, party,
      SUM(CASE WHEN is_meant THEN 1 ELSE 0 END) AS syncs,
      SUM(CASE WHEN is_meant THEN end_ns - start_ns ELSE 0 END) AS ns
    FROM waiting
    GROUP BY run, party
  ),
  total AS (
    SELECT run, SUM(syncs) AS syncs, SUM(ns) AS ns FROM own GROUP BY run
  ),
  figure AS (
    SELECT
      CASE
        WHEN cost.party = 0 THEN 'unrecorded'
        WHEN own.syncs IS NOT NULL THEN 'syncs'
        WHEN party.is_kernel = 1 THEN 'kernel'
        WHEN party.is_read = 1 THEN 'reads'
        WHEN party.is_discard THEN 'discards'
        WHEN party.is_meta = 1 THEN 'metadata'
        ELSE 'writes'
      END AS kind,
      party.process AS process,
      party.cgroup AS cgroup,
      cost.syncs AS syncs,
      total.syncs - COALESCE(own.syncs, 0) AS of_syncs,
      total.ns - COALESCE(own.ns, 0) AS of_ns,
      cost.ns AS cost_ns,
      CASE WHEN cost.party > 0 THEN COALESCE(cost.sure_ns, 0) END AS low_ns,
      compared.most_ns AS high_ns,
      compared.ns AS compared_ns,
      compared.error_ns AS compared_error_ns,
      compared.quiet_syncs AS quiet_syncs,
      cost.queue_ns AS queue_ns,
      cost.device_ns AS device_ns,
      cost.locking_ns AS locking_ns,
      cost.commit_ns AS commit_ns,
      cost.emptying_ns AS emptying_ns,
      cost.cpu_ns AS cpu_ns,
      party.bios AS bios,
      party.bytes AS bytes,
      cost.sync_id AS sync_id,
      cost.run AS run
    FROM cost
    JOIN total ON total.run = cost.run
    LEFT JOIN own ON own.run = cost.run AND own.party = cost.party
    LEFT JOIN party ON party.party = cost.party
    LEFT JOIN compared ON compared.party = cost.party
  )
SELECT
  kind, process, cgroup, syncs, of_syncs,
  CAST(cost_ns AS BIGINT) AS cost_ns,
  CAST(low_ns AS BIGINT) AS low_ns,
  CASE WHEN kind <> 'metadata' THEN CAST(high_ns AS BIGINT) END AS high_ns,
  CAST(cost_ns AS DOUBLE) / NULLIF(of_ns, 0) AS share,
  CAST(ROUND(compared_ns) AS BIGINT) AS compared_ns,
  CAST(ROUND(compared_error_ns) AS BIGINT) AS compared_error_ns,
  CAST(quiet_syncs AS BIGINT) AS quiet_syncs,
  CAST(queue_ns AS BIGINT) AS queue_ns,
  CAST(device_ns AS BIGINT) AS device_ns,
  CAST(locking_ns AS BIGINT) AS commit_locking_ns,
  CAST(commit_ns AS BIGINT) AS commit_data_ns,
  CAST(emptying_ns AS BIGINT) AS cache_flush_ns,
  CAST(cpu_ns AS BIGINT) AS cpu_ns,
  bios,
  CAST(bytes AS BIGINT) AS bytes,
  sync_id, run
FROM figure
WHERE of_syncs > 0 AND (kind <> 'kernel' OR cost_ns + device_ns > 0)
ORDER BY run, cost_ns DESC, kind, process NULLS LAST, cgroup NULLS LAST;
