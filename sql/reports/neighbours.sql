-- Neighbours: who else used the device or the journal, and what that cost.
--
-- A row is a process in a control group, as a neighbour of all others: its cost
-- is the time in which syncs of the others waited while the device worked for
-- it. At each instant, a device works for one owner. If it has several bios,
-- that is the owner of the one that was issued last, because a large bio is
-- served in parts, and smaller ones go in between. Where the issue of a bio is
-- not recorded, the device serves it after the bio that completes before it, at
-- the earliest from its submit on. The owner of a bio is the
-- process whose sync it belongs to; else the one that wrote the data; else the
-- one whose sync started the commit; else, where commits are not recorded, as
-- on xfs, the one whose sync waits for one. A bio for which none of these is
-- known counts for the thread that submitted it.
--
-- A sync waits in the phases queue, device, flush, cpu wait, completion,
-- earlier writeback, lock wait, and in those of a commit. While it runs, nobody
-- delays it.
--
-- If the neighbour was quiet for a while, its cost is found in a second way:
-- the others' syncs while it was active are compared with those while it was
-- quiet. low_ns and high_ns hold both results, so they differ much where the
-- two ways disagree. They are no bounds: time in which the neighbour kept the
-- CPUs busy before its first bio is in neither.
--
-- A row of the kind unrecorded has the time in which a bio was queued for at
-- least a millisecond although nothing recorded was at its device. Either
-- something that the recording lacks held the device (reads, another partition,
-- another guest), or the CPUs were too busy to hand the bio over.
--
-- Columns:
--   kind       text   syncs: it syncs files itself. writes: it only writes.
--                     reads: it only reads. discards: it only discards or
--                     zeroes. kernel: a thread of the kernel, for an unknown
--                     program. unrecorded: nothing recorded.
--   process    text   Name of the process; where that is not recorded, of the
--                     thread.
--   cgroup     text   Its control group. Null if it is not known.
--   syncs      count  Number of syncs of others that it delayed.
--   of_syncs   count  Number of syncs of others.
--   cost_ns    ns     Time in which it delayed them: the sum of its ways,
--                     without device_ns.
--   low_ns     ns     The smaller one of the cost without cpu_ns and of
--                     compared_ns. Null if it is unrecorded.
--   high_ns    ns     The larger one of compared_ns and of the cost with
--                     device_ns and all time in which the others waited for a
--                     CPU while it was active. Null if it is unrecorded.
--   share      share  Part of the time of the others' syncs that is cost_ns.
--   compared_ns  ns   The cost by comparison. Null unless there are 20 syncs of
--                     a process while it was active, and 20 while it was quiet.
--   quiet_syncs  count  Number of syncs of others while it was quiet: for more
--                     than a second it had neither a bio nor a sync in flight.
--   queue_ns   ns     Way: bios of the others were queued, or they waited for
--                     earlier writeback.
--   device_ns  ns     Its bios were issued after those of the others, and were
--                     at the device together with them. A device that serves
--                     several at once may lose nothing by that.
--   commit_locking_ns  ns   Way: a commit waited until open handles were
--                     closed. It is inferred that the owner holds them for whom
--                     the device works.
--   commit_data_ns  ns   Way: the others waited for a commit, and the device
--                     worked for its data or its commits.
--   cache_flush_ns  ns   Way: the others waited for a cache flush.
--   cpu_ns     ns     Way: the others waited for a CPU, or for a worker of the
--                     file system. It is inferred that these were busy for the
--                     owner for whom the device works.
--   bios       count  Number of its bios.
--   bytes      bytes  Their size.
--   sync_id    id     The sync that it delayed most.
--   run        text   Name of the run, if the input holds several.
WITH
  -- The syncs, each with the process and the group that it is of.
  request AS MATERIALIZED (
    SELECT
      run,
      sync_id,
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
      bio.ts_ns AS submit_ns,
      bio.queue_ns AS queue_ns,
      -- When the device has completed the bio before it.
      LAG(bio.ts_ns + bio.dur_ns) OVER (
        PARTITION BY
          bio.run,
          COALESCE(bio.below, bio.dev)
        ORDER BY bio.ts_ns + bio.dur_ns, bio.bio_id
      ) AS before_ns,
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
        request.process,
        bio.writers,
        starter.process,
        CASE WHEN bio.comm LIKE 'kworker/%' THEN 'kworker' END,
        bio.process,
        bio.comm,
        ''
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
    WHERE
      bio.dev IS NOT NULL
      AND bio.dur_ns IS NOT NULL
  ),
  -- The device of a file system: where most bios of its syncs went.
  home AS (
    SELECT
      request.run AS run,
      request.dev AS dev,
      bio.place AS place,
      ROW_NUMBER() OVER (
        PARTITION BY
          request.run,
          request.dev
        ORDER BY COUNT(*) DESC, bio.place
      ) AS number
    FROM request
    JOIN bio ON bio.run = request.run AND bio.sync_id = request.sync_id
    GROUP BY
      request.run,
      request.dev,
      bio.place
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
    WHERE
      request.start_ns IS NOT NULL
      AND request.end_ns IS NOT NULL
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
    WHERE
      wait.commit_id IS NULL
      AND wait.wait <> 'flush'
  ),
  -- A bio of a kernel thread is for such a wait if it is submitted meanwhile.
  -- reached_ns is the latest end of the waits that have begun.
  log_moment AS (
    SELECT
      run,
      place,
      from_ns AS at_ns,
      until_ns,
      CAST(NULL AS BIGINT) AS bio_id
    FROM log_wait
    UNION ALL
    SELECT run, place, submit_ns, NULL, bio_id FROM bio WHERE part = 'kernel'
  ),
  log_reach AS (
    SELECT
      run,
      place,
      bio_id,
      at_ns,
      MAX(until_ns) OVER (
        PARTITION BY
          run,
          place
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
    GROUP BY
      log_reach.run,
      log_reach.bio_id
  ),
  named AS (
    SELECT
      bio.run AS run,
      bio.bio_id AS bio_id,
      bio.place AS place,
      bio.direction AS direction,
      bio.bytes AS bytes,
      bio.submit_ns AS submit_ns,
      -- Without an issue, the device serves one after the other.
      CASE
        WHEN bio.queue_ns IS NOT NULL THEN bio.submit_ns + bio.queue_ns
        WHEN bio.before_ns > bio.submit_ns THEN bio.before_ns
        ELSE bio.submit_ns
      END AS issue_ns,
      bio.complete_ns AS complete_ns,
      CASE WHEN log_bio.bio_id IS NOT NULL THEN 'commit' ELSE part END AS part,
      COALESCE(log_bio.process, bio.process) AS process,
      CASE
        WHEN log_bio.bio_id IS NOT NULL THEN log_bio.cgroup
        WHEN part <> 'kernel' THEN bio.cgroup
      END AS cgroup
    FROM bio
    LEFT JOIN log_bio ON log_bio.run = bio.run AND log_bio.bio_id = bio.bio_id
  ),
  owned AS MATERIALIZED (
    SELECT *, process || ' ' || COALESCE(cgroup, '') AS owner FROM named
  ),
  -- Moments at which a bio is submitted, issued or completed. The thread that
  -- writes many data keeps bios for a while before it queues them.
  edge AS (
    SELECT
      run,
      place,
      submit_ns AS at_ns,
      CASE WHEN part = 'data' THEN 0 ELSE 1 END AS queued,
      0 AS issued,
      CASE WHEN part = 'data' THEN NULL ELSE issue_ns END AS issue_ns,
      CAST(NULL AS BIGINT) AS complete_ns
    FROM owned
    UNION ALL
    SELECT
      run,
      place,
      issue_ns,
      CASE WHEN part = 'data' THEN 0 ELSE -1 END,
      1,
      NULL,
      complete_ns
    FROM owned
    UNION ALL
    SELECT run, place, complete_ns, 0, -1, NULL, NULL FROM owned
  ),
  moment AS (
    SELECT
      run,
      place,
      at_ns,
      SUM(queued) AS queued,
      SUM(issued) AS issued,
      MAX(issue_ns) AS issue_ns,
      MAX(complete_ns) AS complete_ns,
      MAX(CASE WHEN complete_ns IS NOT NULL THEN at_ns END) AS issued_ns
    FROM edge
    GROUP BY
      run,
      place,
      at_ns
  ),
  -- From each moment to the next one, how many bios are queued and at the
  -- device; when the last bio was issued; when the last one completes of those
  -- that were issued; and when the last one is issued of those that are queued.
  span AS (
    SELECT
      run,
      place,
      at_ns AS from_ns,
      LEAD(at_ns) OVER in_order AS until_ns,
      SUM(queued) OVER in_order AS queued,
      SUM(issued) OVER in_order AS issued,
      MAX(issue_ns) OVER in_order AS issue_ns,
      MAX(issued_ns) OVER in_order AS last_ns,
      MAX(complete_ns) OVER in_order AS complete_ns
    FROM moment
    WINDOW
      in_order AS (PARTITION BY run, place ORDER BY at_ns)
  ),
  -- When the bio completes for which the device works: the one that was issued
  -- last, and if that is complete, the one that stays for longest.
  working AS (
    SELECT
      span.run AS run,
      span.place AS place,
      span.from_ns AS from_ns,
      span.until_ns AS until_ns,
      CASE
        WHEN last.complete_ns > span.from_ns THEN last.complete_ns
        ELSE span.complete_ns
      END AS complete_ns
    FROM span
    JOIN moment AS last
      ON last.run = span.run
      AND last.place = span.place
      AND last.at_ns = span.last_ns
    WHERE
      span.issued > 0
  ),
  -- Bios of one request of the block layer are issued and completed together.
  completed AS (
    SELECT run, place, complete_ns, MIN(owner) AS owner
    FROM owned
    GROUP BY
      run,
      place,
      complete_ns
  ),
  issued AS (
    SELECT run, place, issue_ns, MIN(owner) AS owner
    FROM owned
    WHERE
      part <> 'data'
    GROUP BY
      run,
      place,
      issue_ns
  ),
  -- For whom a device works, and whose bio is queued while it has nothing to
  -- do. The rows of a state do not overlap.
  held AS MATERIALIZED (
    SELECT
      working.run AS run,
      working.place AS place,
      working.from_ns AS from_ns,
      working.until_ns AS until_ns,
      completed.owner AS owner,
      'working' AS state
    FROM working
    JOIN completed
      ON completed.run = working.run
      AND completed.place = working.place
      AND completed.complete_ns = working.complete_ns
    UNION ALL
    SELECT
      span.run,
      span.place,
      span.from_ns,
      span.until_ns,
      issued.owner,
      state.state
    FROM span
    JOIN issued
      ON issued.run = span.run
      AND issued.place = span.place
      AND issued.issue_ns = span.issue_ns
    JOIN (
      SELECT 'idle' AS state
      UNION ALL
      SELECT 'stalled'
    ) AS state
      ON state.state = 'idle'
      OR span.until_ns - span.from_ns >= 1000000
    WHERE
      span.issued = 0
      AND span.queued > 0
  ),
  -- What the others wait in.
  piece AS MATERIALIZED (
    SELECT
      victim.run AS run,
      victim.place AS place,
      victim.owner AS owner,
      victim.fs AS fs,
      victim.sync_id AS sync_id,
      CASE phase.phase
        WHEN 'device' THEN 'device'
        WHEN 'flush' THEN 'flush'
        WHEN 'commit locking' THEN 'locking'
        WHEN 'queue' THEN 'queue'
        WHEN 'writeback' THEN 'queue'
        WHEN 'earlier writeback' THEN 'queue'
        WHEN 'cpu wait' THEN 'cpu'
        WHEN 'completion' THEN 'cpu'
        ELSE 'commit'
      END AS way,
      phase.ts_ns AS from_ns,
      phase.ts_ns + phase.dur_ns AS until_ns
    FROM victim
    JOIN syncline_phase AS phase
      ON phase.run = victim.run
      AND phase.sync_id = victim.sync_id
    WHERE
      victim.is_meant
      AND phase.dur_ns > 0
      AND phase.phase NOT IN (
        'before submit',
        'submit',
        'after completion',
        'residue'
      )
  ),
  -- Numbers sort faster than names.
  holder AS MATERIALIZED (
    SELECT
      run,
      place,
      owner,
      state,
      CASE state WHEN 'stalled' THEN '' ELSE owner END AS neighbour,
      ROW_NUMBER() OVER (ORDER BY run, place, owner, state) AS holder
    FROM held
    GROUP BY
      run,
      place,
      owner,
      state
  ),
  -- Where a sync waits for its own bio, a neighbour delays it while the device
  -- works for that one. Otherwise, also a queued bio of the neighbour delays
  -- it. If its own bio is stalled, nothing recorded is the reason, unless a
  -- worker of btrfs has it, which makes its checksum.
  delayed_piece AS MATERIALIZED (
    SELECT
      holder.holder AS holder,
      piece.sync_id AS sync_id,
      piece.way AS way,
      piece.from_ns AS from_ns,
      piece.until_ns AS until_ns
    FROM holder
    JOIN piece ON piece.run = holder.run AND piece.place = holder.place
    WHERE
      CASE holder.state
        WHEN 'working' THEN piece.owner <> holder.owner
        WHEN 'idle' THEN piece.owner <> holder.owner
        AND piece.way IN ('commit', 'cpu')
        ELSE piece.owner = holder.owner
        AND piece.fs <> 'btrfs'
        AND piece.way NOT IN ('cpu', 'device')
      END
  ),
  -- How long the device was in the state, up to each border of a piece.
  border AS (
    SELECT
      holder,
      sync_id,
      way,
      from_ns AS at_ns,
      -1 AS sign,
      CAST(NULL AS BIGINT) AS until_ns
    FROM delayed_piece
    UNION ALL
    SELECT holder, sync_id, way, until_ns, 1, NULL FROM delayed_piece
    UNION ALL
    SELECT holder.holder, NULL, NULL, held.from_ns, 0, held.until_ns
    FROM held
    JOIN holder
      ON holder.run = held.run
      AND holder.place = held.place
      AND holder.owner = held.owner
      AND holder.state = held.state
  ),
  reached AS (
    SELECT
      holder,
      sync_id,
      way,
      sign,
      at_ns,
      SUM(until_ns - at_ns) OVER in_order AS begun_ns,
      MAX(until_ns) OVER in_order AS end_ns
    FROM border
    WINDOW
      in_order AS (
        PARTITION BY
          holder
        ORDER BY at_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      )
  ),
  -- Before its first span, a holder was in no state.
  passed AS (
    SELECT
      holder,
      sync_id,
      way,
      SUM(
        sign
        * (COALESCE(begun_ns, 0)
        - CASE WHEN end_ns > at_ns THEN end_ns - at_ns ELSE 0 END)
      ) AS ns
    FROM reached
    WHERE
      sign <> 0
    GROUP BY
      holder,
      sync_id,
      way
  ),
  delay AS MATERIALIZED (
    SELECT
      holder.run AS run,
      holder.neighbour AS neighbour,
      passed.sync_id AS sync_id,
      passed.way AS way,
      SUM(passed.ns) AS ns
    FROM passed
    JOIN holder ON holder.holder = passed.holder
    GROUP BY
      holder.run,
      holder.neighbour,
      passed.sync_id,
      passed.way
  ),
  of_sync AS (
    SELECT
      run,
      neighbour,
      sync_id,
      SUM(CASE WHEN way <> 'device' THEN ns ELSE 0 END) AS ns
    FROM delay
    GROUP BY
      run,
      neighbour,
      sync_id
  ),
  worst AS (
    SELECT run, neighbour, MAX(ns) AS ns
    FROM of_sync
    WHERE
      ns > 0
    GROUP BY
      run,
      neighbour
  ),
  delayed AS (
    SELECT
      of_sync.run AS run,
      of_sync.neighbour AS neighbour,
      COUNT(*) AS syncs,
      MIN(CASE WHEN of_sync.ns = worst.ns THEN sync_id END) AS sync_id
    FROM of_sync
    JOIN worst
      ON worst.run = of_sync.run
      AND worst.neighbour = of_sync.neighbour
    WHERE
      of_sync.ns > 0
    GROUP BY
      of_sync.run,
      of_sync.neighbour
  ),
  cost AS (
    SELECT
      run,
      neighbour,
      SUM(CASE WHEN way = 'queue' THEN ns ELSE 0 END) AS queue_ns,
      SUM(CASE WHEN way = 'device' THEN ns ELSE 0 END) AS device_ns,
      SUM(CASE WHEN way = 'locking' THEN ns ELSE 0 END) AS locking_ns,
      SUM(CASE WHEN way = 'commit' THEN ns ELSE 0 END) AS commit_ns,
      SUM(CASE WHEN way = 'flush' THEN ns ELSE 0 END) AS cache_flush_ns,
      SUM(CASE WHEN way = 'cpu' THEN ns ELSE 0 END) AS cpu_ns
    FROM delay
    GROUP BY
      run,
      neighbour
  ),
  cpu AS (
    SELECT run, sync_id, SUM(until_ns - from_ns) AS ns
    FROM piece
    WHERE
      way = 'cpu'
    GROUP BY
      run,
      sync_id
  ),
  -- When each neighbour was active: its bios and syncs, and gaps of up to a
  -- second between them.
  activity AS (
    SELECT run, owner, submit_ns AS from_ns, complete_ns AS until_ns FROM owned
    UNION ALL
    SELECT run, owner, start_ns, end_ns FROM victim
  ),
  activity_reach AS (
    SELECT
      *,
      MAX(until_ns) OVER (
        PARTITION BY
          run,
          owner
        ORDER BY from_ns, until_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ns
    FROM activity
  ),
  activity_number AS (
    SELECT
      *,
      SUM(CASE WHEN from_ns - reached_ns <= 1000000000 THEN 0 ELSE 1 END) OVER (
        PARTITION BY
          run,
          owner
        ORDER BY from_ns, until_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS number
    FROM activity_reach
  ),
  active AS (
    SELECT run, owner, MIN(from_ns) AS from_ns, MAX(until_ns) AS until_ns
    FROM activity_number
    GROUP BY
      run,
      owner,
      number
  ),
  -- Each sync of the others, with the end of the last active time that began
  -- before the sync ended.
  meeting AS (
    SELECT
      active.run AS run,
      active.owner AS neighbour,
      NULL AS victim,
      NULL AS op,
      CAST(NULL AS BIGINT) AS start_ns,
      NULL AS cpu_ns,
      active.from_ns AS at_ns,
      active.until_ns AS until_ns
    FROM active
    UNION ALL
    SELECT
      neighbour.run,
      neighbour.owner,
      victim.owner,
      victim.op,
      victim.start_ns,
      cpu.ns,
      victim.end_ns,
      NULL
    FROM (SELECT DISTINCT run, place, owner FROM owned) AS neighbour
    JOIN victim
      ON victim.run = neighbour.run
      AND victim.place = neighbour.place
      AND victim.owner <> neighbour.owner
      AND victim.is_meant
    LEFT JOIN cpu ON cpu.run = victim.run AND cpu.sync_id = victim.sync_id
  ),
  met AS (
    SELECT
      run,
      neighbour,
      victim,
      op,
      at_ns - start_ns AS ns,
      cpu_ns,
      COALESCE(
        MAX(until_ns) OVER (
          PARTITION BY
            run,
            neighbour
          ORDER BY at_ns
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
        > start_ns,
        FALSE
      ) AS is_active
    FROM meeting
  ),
  mean AS (
    SELECT
      run,
      neighbour,
      victim,
      op,
      SUM(CASE WHEN is_active THEN 1 ELSE 0 END) AS syncs,
      SUM(CASE WHEN is_active THEN 0 ELSE 1 END) AS quiet_syncs,
      SUM(CASE WHEN is_active THEN cpu_ns END) AS cpu_ns,
      AVG(CASE WHEN is_active THEN ns END) AS ns,
      AVG(CASE WHEN NOT is_active THEN ns END) AS quiet_ns
    FROM met
    WHERE
      victim IS NOT NULL
    GROUP BY
      run,
      neighbour,
      victim,
      op
  ),
  compared AS (
    SELECT
      run,
      neighbour,
      SUM(quiet_syncs) AS quiet_syncs,
      COALESCE(SUM(cpu_ns), 0) AS cpu_ns,
      SUM(
        CASE
          WHEN syncs >= 20
          AND quiet_syncs >= 20 THEN syncs * (ns - quiet_ns)
        END
      ) AS ns
    FROM mean
    GROUP BY
      run,
      neighbour
  ),
  -- Kind, bios and bytes of each neighbour.
  used AS (
    SELECT
      run,
      owner,
      MIN(process) AS process,
      MIN(cgroup) AS cgroup,
      MIN(CASE WHEN part = 'kernel' THEN 1 ELSE 0 END) AS is_kernel,
      MIN(CASE WHEN direction = 'read' THEN 1 ELSE 0 END) AS is_read,
      MIN(direction IN ('discard', 'zeroes')) AS is_discard,
      COUNT(*) AS bios,
      SUM(bytes) AS bytes
    FROM owned
    GROUP BY
      run,
      owner
  ),
  own AS (
    SELECT
      run,
      owner,
      SUM(CASE WHEN is_meant THEN 1 ELSE 0 END) AS syncs,
      SUM(CASE WHEN is_meant THEN end_ns - start_ns ELSE 0 END) AS ns
    FROM victim
    GROUP BY
      run,
      owner
  ),
  total AS (
    SELECT run, SUM(syncs) AS syncs, SUM(ns) AS ns FROM own GROUP BY run
  ),
  figure AS (
    SELECT
      cost.run AS run,
      cost.neighbour AS neighbour,
      CASE
        WHEN cost.neighbour = '' THEN 'unrecorded'
        WHEN own.syncs IS NOT NULL THEN 'syncs'
        WHEN used.is_kernel = 1 THEN 'kernel'
        WHEN used.is_read = 1 THEN 'reads'
        WHEN used.is_discard THEN 'discards'
        ELSE 'writes'
      END AS kind,
      used.process AS process,
      used.cgroup AS cgroup,
      delayed.syncs AS syncs,
      total.syncs - COALESCE(own.syncs, 0) AS of_syncs,
      total.ns - COALESCE(own.ns, 0) AS of_ns,
      queue_ns + locking_ns + commit_ns + cache_flush_ns
      + CASE WHEN cost.neighbour = '' THEN 0 ELSE cost.cpu_ns END AS cost_ns,
      queue_ns + commit_ns + cache_flush_ns + locking_ns AS sure_ns,
      compared.ns AS compared_ns,
      compared.quiet_syncs AS quiet_syncs,
      queue_ns + locking_ns + commit_ns + cache_flush_ns + device_ns
      + COALESCE(compared.cpu_ns, 0) AS most_ns,
      queue_ns,
      device_ns,
      locking_ns,
      commit_ns,
      cache_flush_ns,
      CASE WHEN cost.neighbour = '' THEN 0 ELSE cost.cpu_ns END AS cpu_ns,
      used.bios AS bios,
      used.bytes AS bytes,
      delayed.sync_id AS sync_id
    FROM cost
    JOIN total ON total.run = cost.run
    LEFT JOIN own ON own.run = cost.run AND own.owner = cost.neighbour
    LEFT JOIN used ON used.run = cost.run AND used.owner = cost.neighbour
    LEFT JOIN delayed
      ON delayed.run = cost.run
      AND delayed.neighbour = cost.neighbour
    LEFT JOIN compared
      ON compared.run = cost.run
      AND compared.neighbour = cost.neighbour
  )
SELECT
  kind,
  process,
  cgroup,
  COALESCE(syncs, 0) AS syncs,
  of_syncs,
  CAST(cost_ns AS BIGINT) AS cost_ns,
  CAST(CASE
    WHEN kind = 'unrecorded' THEN NULL
    WHEN compared_ns < 0 THEN 0
    WHEN compared_ns < sure_ns THEN compared_ns
    ELSE sure_ns
  END AS BIGINT) AS low_ns,
  CAST(CASE
    WHEN kind = 'unrecorded' THEN NULL
    WHEN compared_ns > most_ns THEN compared_ns
    ELSE most_ns
  END AS BIGINT) AS high_ns,
  CAST(cost_ns AS DOUBLE) / NULLIF(of_ns, 0) AS share,
  CAST(compared_ns AS BIGINT) AS compared_ns,
  CAST(quiet_syncs AS BIGINT) AS quiet_syncs,
  CAST(queue_ns AS BIGINT) AS queue_ns,
  CAST(device_ns AS BIGINT) AS device_ns,
  CAST(locking_ns AS BIGINT) AS commit_locking_ns,
  CAST(commit_ns AS BIGINT) AS commit_data_ns,
  CAST(cache_flush_ns AS BIGINT) AS cache_flush_ns,
  CAST(cpu_ns AS BIGINT) AS cpu_ns,
  bios,
  CAST(bytes AS BIGINT) AS bytes,
  sync_id,
  run
FROM figure
WHERE
  of_syncs > 0
  AND (kind <> 'kernel' OR cost_ns + device_ns > 0)
ORDER BY
  run,
  cost_ns DESC,
  kind,
  process NULLS LAST,
  cgroup NULLS LAST;
