-- Neighbours: who else used the device, the journal or the CPU, and what that
-- cost.
--
-- A row is a process in a control group, as a neighbour of all others. Its cost
-- is the time in which syncs of the others waited while the device worked for
-- it, while the journal made an earlier commit that it had started, or while it
-- had the CPU that they waited for.
--
-- At each instant, a device works for one owner. If it has several bios, it
-- works for the owner of the bio that was issued last, because a large bio is
-- served in parts, and smaller ones go in between. While it has none, the
-- owner of the queued bio that it gets next holds it. Where the issue of a bio
-- is not recorded, the device serves it after the bio that completes before
-- it, at the earliest from its submit on.
--
-- The owner of a bio is the process whose sync it belongs to; else the one
-- that wrote the data; else the one whose sync started the commit; else, where
-- commits are not recorded, as on xfs, the one whose sync waits for one. A bio
-- for which none of these is known counts for the thread that submitted it. A
-- commit of ext4 is longer if others have changed metadata, so the blocks that
-- it has for them belong to them, unless it had taken as long without them
-- (journal_blocks!).
--
-- A sync waits in the phases queue, device, flush, cpu wait, completion,
-- earlier writeback and lock wait, and in the phases of a commit. A piece of
-- before submit of at least a millisecond counts as well, because it is a lock
-- that the kernel does not report, as f2fs has. While the sync runs, nobody
-- delays it. Nobody delays it either while the device writes the commit for
-- which it waits, because without the others it would wait for one of its own.
--
-- The kernel keeps data back for a limit of a control group, or until the
-- thread that writes them back has collected more. While nothing is at the
-- device, the owner of such data holds the threads and the commits, which
-- counts for waits for a commit, a lock or a CPU.
--
-- Where switches of threads are recorded, it is known which program had the
-- CPU while a thread that syncs was ready, or while the thread was ready that
-- then woke it, such as that of the journal. Nobody is to blame while the
-- device works for the sync or for a commit, because the thread would only wait
-- longer for that. Nobody is to blame either if the control group of the sync
-- has a limit of CPU time (cpu.max), because that limit may hold its threads
-- back. Where the switch to the program is not recorded, only time counts in
-- which the device does nothing.
--
-- The cost is an estimate, because it takes for granted that a sync would have
-- been shorter by what the device did for somebody else. low_ns and high_ns
-- are bounds. low_ns adds up:
--
-- * time in which the device worked for the neighbour alone, while a bio of the
--   sync was queued, or while the sync waited for the data of a commit or for
--   an earlier commit of an unknown starter;
-- * such time while the sync waited for a journal that had a bio in the queue;
-- * all waits for an earlier commit that the neighbour's sync started, by what
--   the recording says of the start;
-- * time in which a program that only computes had the CPU, by a recorded
--   switch, while the device worked for nobody.
--
-- Time in which the journal waited until handles were closed does not count,
-- because whose handles these were is only inferred.
--
-- high_ns adds up the syncs that met the neighbour, each without the time in
-- which the device worked for nobody but the sync, or for what it needs from
-- its own commit. A program that only computes takes no time of the device, so
-- for it they count without the time in which they waited for that while it
-- worked for anybody. If 20 or more syncs like it met nobody, and the fastest
-- took longer than that time, the sync counts without the fastest one's length
-- instead. So high_ns includes what the neighbour took from their thread or
-- their journal unseen.
--
-- Syncs are alike if a process makes them by the same call on the same device,
-- if their bytes, and their bios, have as many digits, and if both or none of
-- them wait for a commit.
--
-- A sync has met the neighbour if the neighbour was active during it: if it had
-- a bio or a sync in flight, or one before and one after that, no more than a
-- second apart. A neighbour that has neither at all is active while it has the
-- CPU for which a sync waits.
-- The bounds leave out what the neighbour cost while it only changed metadata,
-- unless blocks of commits are known to be its, and, if it has bios or syncs at
-- all, while it only computed.
-- Both need the right owner of each bio, and take for granted that a device
-- works for nobody who has no recorded bio there. Reads that are not recorded,
-- or the cleaning up of a device after earlier writes, may therefore cost more
-- than high_ns. If they slowed down even the fastest of the syncs that met
-- nobody, too much is left out of high_ns.
--
-- If the neighbour was quiet for a while, its cost is found in a second way:
-- the others' syncs while nobody but it was active are compared with their
-- syncs while nobody was, threads of the kernel left out. That has what the
-- neighbour cost in any way, but also whatever else was different at that
-- time, such as reads that are not recorded.
--
-- A row of the kind unrecorded has the time in which a bio was queued for at
-- least a millisecond although nothing recorded was at its device, and it did
-- not wait for a flush before it, which only a device with a cache needs.
-- Either something that the recording lacks held the device (reads, another
-- partition, another guest), or the CPUs were too busy to hand the bio over.
-- On btrfs, that needs the copies of its metadata, which older recordings
-- lack.
--
-- Kinds:
--   syncs       It syncs files itself.
--   writes      It only writes.
--   reads       It only reads.
--   discards    It only discards or zeroes.
--   metadata    It only changed metadata: commits of others have blocks of it,
--               or its bios are of metadata or flushes.
--   computes    It has neither bios nor syncs, and had the CPU that syncs
--               waited for.
--   kernel      A thread of the kernel, for an unknown program. No row without
--               a cost_ns or a device_ns.
--   unrecorded  Nothing recorded.
--
-- Narrow: kind process cost_ns share syncs low_ns high_ns cgroup bytes
--
-- Columns:
--   kind       text   As above.
--   process    text   Name of the process; where that is not recorded, of the
--                     thread.
--   cgroup     text   Its control group. If that of some of its processes is
--                     not known, as of commands that end at once, it is
--                     inferred from the others of the same name, if these have
--                     one group. Null if it is not known.
--   syncs      count  Number of syncs of others that it delayed.
--   of_syncs   count  Number of syncs of others.
--   cost_ns    ns     Time in which it delayed them: the sum of its ways,
--                     without device_ns.
--   low_ns     ns     Lower bound of its cost. Null if it is unrecorded.
--   high_ns    ns     Upper bound of what it cost the syncs that met it. Null
--                     if it is unrecorded, if its bios and syncs are at other
--                     devices, and for metadata if no block of a commit is
--                     known to be its.
--   share      share  Part of the time of the others' syncs that is cost_ns.
--   compared_ns  ns   The cost by comparison, below 0 if the others' syncs were
--                     shorter while it was active. Null unless 20 syncs of a
--                     process met nobody but it, and 20 met nobody.
--   compared_error_ns  ns  Two standard errors of compared_ns, if the syncs do
--                     not depend on each other.
--   quiet_syncs  count  Number of syncs of others that met nobody but threads
--                     of the kernel and programs that only compute.
--   queue_ns   ns     Way: bios of the others were queued, or they waited for
--                     earlier writeback.
--   device_ns  ns     Its bios were issued after those of the others, and were
--                     at the device together with them. A device that serves
--                     several at once may lose nothing by that.
--   commit_locking_ns  ns   Way: a commit waited until open handles were
--                           closed. It is inferred that these are handles of
--                           the owner for whom the device works.
--   commit_data_ns  ns   Way: the others waited for a commit, and the device
--                     worked for its data, its changes or its commits; or for
--                     a lock, or for an earlier commit that its sync started.
--   cache_flush_ns  ns   Way: the others waited for a cache flush.
--   cpu_ns     ns     Way: the others waited for a CPU that it had. Where a
--                     thread of the kernel had it, or one of their own, and
--                     while they waited for a worker of the file system, it is
--                     inferred that this was for whom the device works.
--   bios       count  Number of its bios.
--   bytes      bytes  Their size.
--   sync_id    id     The sync that it delayed most.
--   run        text   Name of the run, if the input holds several.
WITH
  -- The syncs whose waiting time the report counts: all. A filter puts the list
  -- of those that pass it in the place of this SELECT. The other syncs are
  -- still what neighbours do.
  counted AS (SELECT run, sync_id FROM syncline_sync),
  -- The syncs that waited for a commit.
  sync_with_commit AS (
    SELECT DISTINCT run, sync_id
    FROM syncline_phase
    WHERE phase LIKE '%commit%' AND dur_ns > 0
  ),
  -- Syncs of known length, from sync_start on, each with its owner, and whether
  -- it is counted. `home` has the place at which its bios are issued, and
  -- `alone` the control group of its process where that is not recorded.
  owned_sync AS (
    SELECT
      of!(sync, (run, sync_id, call_sync_id, op, fs)),
      start_ns AS ts_ns,
      ts_ns + dur_ns - start_ns AS dur_ns,
      COALESCE(sync.process, comm, '') AS process,
      COALESCE(sync.cgroup, alone.cgroup) AS cgroup,
      -- The same text as in owned_bios!, which parties are found by.
      COALESCE(sync.process, comm, '') || ' '
      || COALESCE(sync.cgroup, alone.cgroup, '') AS owner,
      COALESCE(home.place, sync.dev) AS place,
      -- How many digits its bytes and its bios have, and whether it waits for a
      -- commit: syncs with the same text are alike.
      CAST(LENGTH(CAST(bytes AS TEXT)) AS TEXT) || ' '
      || CAST(LENGTH(CAST(bios AS TEXT)) AS TEXT)
      || CASE
        WHEN sync_with_commit.sync_id IS NULL THEN ''
        ELSE ' commit'
      END AS work,
      CASE WHEN counted.sync_id IS NOT NULL THEN 1 ELSE 0 END AS is_counted
    FROM syncline_sync AS sync
    LEFT JOIN counted ON same!(counted, sync, (run, sync_id))
    LEFT JOIN place_of_file_system!() AS home ON same!(home, sync, (run, dev))
    LEFT JOIN sync_with_commit ON same!(sync_with_commit, sync, (run, sync_id))
    LEFT JOIN only_groups!() AS alone
      ON alone.run = sync.run
      AND alone.process = COALESCE(sync.process, comm, '')
    WHERE start_ns IS NOT NULL AND dur_ns IS NOT NULL
  ),
  -- Bios, each with the process for which the device serves it.
  owned_bio AS (SELECT * FROM owned_bios!()),
  -- Waits for a CPU that another program had, of syncs and of the threads that
  -- then woke them.
  cpu_user AS (SELECT * FROM cpu_users!()),
  -- Each process in a control group that has a bio or a sync, or had a CPU.
  party AS MATERIALIZED (
    SELECT * FROM parties!(owned_bio, owned_sync, cpu_user)
  ),
  -- The same syncs, each with the number of its party. `is_unlimited` is 1 if
  -- its control group has no limit of CPU time.
  sync AS MATERIALIZED (
    SELECT
      of!(
        owned_sync,
        (run, place, sync_id, op, fs, ts_ns, dur_ns, is_counted, work)
      ),
      owned_sync.call_sync_id AS call_sync_id,
      party.party AS party,
      CASE WHEN limited.cgroup IS NULL THEN 1 ELSE 0 END AS is_unlimited
    FROM owned_sync
    JOIN party USING (run, owner)
    LEFT JOIN limited_groups!(owned_sync) AS limited
      ON same!(limited, owned_sync, (run, cgroup))
  ),
  -- The same bios, each with the number of its party. Times in which the
  -- journal handles a block that is there for a party are rows, too.
  bio AS MATERIALIZED (SELECT * FROM party_bios!(owned_bio, party)),
  -- For each time, the party that holds a device: the device works for it, or
  -- has nothing, and others wait for the party (idle). If its bio is queued and
  -- waits for long, a second row says that the party waits too (stalled).
  -- `is_sole`: all bios at the device are the party's. `is_awaited`: and a bio
  -- of a log is queued. `of_log`: the device works for a log.
  device_hold AS MATERIALIZED (SELECT * FROM device_use!(bio, (run, place))),
  -- Waits of syncs for a CPU that another party had, and their cost.
  cpu_wait AS MATERIALIZED (
    SELECT of!(sync, (place, is_counted, call_sync_id, is_unlimited)), found.*
    FROM cpu_costs!(cpu_user, sync, party, device_hold) AS found
    JOIN sync USING (run, sync_id)
  ),
  -- Waits for an earlier commit, with the party whose sync started it. Waits
  -- for one of an unknown starter are not here, and neither are those whose
  -- starter has no known end.
  earlier_commit AS MATERIALIZED (
    SELECT of!(found, (run, sync_id, ts_ns, dur_ns, is_inferred)), sync.party
    FROM earlier_commits!() AS found
    JOIN sync ON sync.run = found.run AND sync.sync_id = found.starter_id
  ),
  -- The waits of counted syncs whose cause is what the device did. Where the
  -- cause is recorded (the starter of an earlier commit, or who had the CPU),
  -- `delay` takes it from there instead. Where it is only inferred who had the
  -- CPU, the wait is here, too, because `cpu_wait` counts only the rest of it,
  -- in which nobody held the device.
  waited_time AS MATERIALIZED (
    SELECT
      of!(sync, (run, place, sync_id)),
      way_of_phase!(span.phase) AS way,
      of!(span, (ts_ns, dur_ns))
    FROM sync
    JOIN syncline_phase AS span USING (run, sync_id)
    LEFT JOIN earlier_commit
      ON span.phase = 'earlier commit'
      AND same!(earlier_commit, span, (run, sync_id, ts_ns))
    LEFT JOIN cpu_wait
      ON is_exact = 1
      AND same!(cpu_wait, span, (run, sync_id, ts_ns))
    WHERE
      sync.is_counted = 1
      AND earlier_commit.run IS NULL
      AND cpu_wait.run IS NULL
      AND span.dur_ns > 0
      AND way_of_phase!(span.phase) IS NOT NULL
      -- A group with a limit of CPU time may wait for nothing else.
      AND (sync.is_unlimited = 1 OR way_of_phase!(span.phase) <> 'cpu')
      AND (span.phase <> 'before submit' OR span.dur_ns >= 1000000)
  ),
  -- How long each party held the device while a sync, the waiter, waited.
  held_time AS MATERIALIZED (
    SELECT
      of!(found, (run, place, sync_id, way)),
      of!(found, (party, state, is_sole, is_awaited, of_log)),
      found.common_ns AS ns,
      of!(sync, (fs, call_sync_id)),
      sync.party AS waiter
    FROM common_time!(
      waited_time, device_hold,
      (sync_id, way),
      (party, state, is_sole, is_awaited, of_log),
      (run, place)
    ) AS found
    JOIN sync USING (run, place, sync_id)
  ),
  -- Time that a party cost a sync (`ns`), and the part of it that is certain
  -- (`sure_ns`). Party 0 is something that is not recorded.
  delay AS MATERIALIZED (
    -- 1. What the device did. While it works for another party than the waiter,
    -- that party delays the waiter. While it is idle, so does the other party
    -- whose data are kept, or whose bio is next, but only in waits for a
    -- commit, a lock or a CPU. While it is stalled and the waiter's own bio is
    -- next, party 0 does, unless the device may be busy with unrecorded copies
    -- of metadata (btrfs). Writing the commit that a sync waits for is for that
    -- sync, so it does not count.
    --
    -- Certain, while the device works for the party alone, are waits in the
    -- queue, for an earlier commit, and for the data of a commit; if a bio of a
    -- log is queued too, also those for a lock and for a commit. Those for
    -- handles are never certain: the handles may be anybody's.
    SELECT
      run, sync_id, call_sync_id, way, ns,
      CASE state WHEN 'stalled' THEN 0 ELSE party END AS party,
      CASE
        WHEN way IN ('queue', 'before', 'data') THEN ns * is_sole
        WHEN way IN ('lock', 'commit') THEN ns * is_awaited
      END AS sure_ns
    FROM held_time
    LEFT JOIN places_without_copies!(bio) AS uncopied USING (run, place)
    WHERE
      CASE state
        WHEN 'stalled' THEN party = waiter
        AND (fs IS DISTINCT FROM 'btrfs' OR uncopied.run IS NULL)
        AND way NOT IN ('device', 'cpu')
        WHEN 'idle' THEN party <> waiter
        AND way IN ('before', 'locking', 'data', 'lock', 'commit', 'cpu')
        ELSE party <> waiter
      END
      AND NOT (way IN ('data', 'commit') AND of_log = 1)
    UNION ALL
    -- 2. Waits for an earlier commit of a known starter: all of it is certain,
    -- unless the starter is inferred.
    SELECT
      of!(sync, (run, sync_id, call_sync_id)),
      'before', earlier_commit.dur_ns, earlier_commit.party,
      earlier_commit.dur_ns * (1 - is_inferred)
    FROM earlier_commit
    JOIN sync USING (run, sync_id)
    WHERE sync.is_counted = 1 AND earlier_commit.party <> sync.party
    UNION ALL
    -- 3. Waits for a CPU that the party had. A limit holds a thread back
    -- whoever else has the CPU, so threads with a limit do not count. For a
    -- party with bios or syncs it is not certain, as high_ns does not have it.
    SELECT
      run, sync_id, call_sync_id, 'cpu', cost_ns, party,
      CASE kind WHEN 'computes' THEN sure_ns END
    FROM cpu_wait
    WHERE is_counted = 1 AND is_unlimited = 1
    UNION ALL
    -- 4. A row of 0 ns for who used the device or the CPU of others' syncs, so
    -- that it is in the report even if it delayed none.
    SELECT run, NULL, NULL, 'none', 0, used.party, 0
    FROM (
      SELECT run, place, party FROM device_hold
      UNION
      SELECT run, place, party FROM cpu_wait
    ) AS used
    JOIN sync USING (run, place)
    WHERE used.party <> sync.party AND is_counted = 1
    GROUP BY run, used.party
  ),
  -- The sync calls that each party delayed, in the order of how long it did:
  -- number 1 is the one that it delayed the longest. A call of several requests
  -- has the number of the first.
  costliest AS (
    SELECT
      run, party,
      call_sync_id AS sync_id,
      ROW_NUMBER() OVER (
        PARTITION BY run, party
        ORDER BY SUM(ns) DESC, call_sync_id NULLS LAST
      ) AS number
    FROM delay
    WHERE way <> 'device'
    GROUP BY run, party, call_sync_id
  ),
  -- What each party cost the syncs of all others.
  cost AS MATERIALIZED (
    SELECT
      of!(delay, (run, party)),
      COUNT(DISTINCT CASE WHEN way <> 'device' THEN call_sync_id END) AS syncs,
      MIN(costliest.sync_id) AS sync_id,
      sum_where!(ns, way <> 'device') AS ns,
      COALESCE(SUM(sure_ns), 0) AS sure_ns,
      sum_where!(ns, way IN ('queue', 'earlier')) AS queue_ns,
      sum_where!(ns, way = 'device') AS device_ns,
      sum_where!(ns, way = 'locking') AS commit_locking_ns,
      sum_where!(ns, way IN ('before', 'data', 'lock', 'commit')) AS commit_ns,
      sum_where!(ns, way = 'flush') AS cache_flush_ns,
      sum_where!(ns, way = 'cpu') AS cpu_ns
    FROM delay
    LEFT JOIN costliest ON number = 1 AND same!(costliest, delay, (run, party))
    GROUP BY delay.run, delay.party
  ),
  -- Each sync with each other party that used its device. `is_met` is 1 if it
  -- met that one alone, 0 if it met nobody, else null. Only syncs that met
  -- nobody show how fast one like them can be.
  sync_next_to AS MATERIALIZED (
    SELECT
      of!(found, (party, is_active, is_met)),
      sync.party AS waiter,
      of!(sync, (call_sync_id, place, op, work, dur_ns)),
      -- How much of its length the party cannot have cost it: the time for
      -- which the device worked for the sync. A party without bios takes no
      -- time of the device, so for it that is the time for which it worked at
      -- all.
      COALESCE(CASE kind
        WHEN 'computes' THEN any_ns
        ELSE own_ns
      END, 0) AS own_ns,
      CASE WHEN is_met = 0 AND work IS NOT NULL THEN dur_ns END AS quiet_ns
    FROM met_parties!(
      (SELECT * FROM sync WHERE is_counted = 1),
      (
        SELECT run, place, party, is_kernel, ts_ns, dur_ns FROM bio
        UNION ALL
        -- A party is active during its syncs, too. They alone make it no user
        -- of a device (NULL), because only bios show that. A party that only
        -- computes counts as a thread of the kernel (1), so that a sync may
        -- meet another one alone, or nobody, in spite of it.
        SELECT run, NULL, party, 0, ts_ns, dur_ns FROM sync
        UNION ALL
        SELECT run, place, party, 1, ts_ns, dur_ns
        FROM cpu_wait
        WHERE kind = 'computes'
      )
    ) AS found
    JOIN sync USING (run, sync_id)
    JOIN party AS met ON met.party = found.party
    LEFT JOIN served_times!(held_time) AS served USING (run, sync_id)
  ),
  -- The upper bound of what each party cost, and its cost by comparison.
  compared AS MATERIALIZED (SELECT * FROM compared_costs!(sync_next_to)),
  -- For each party, how many syncs next to it met nobody.
  quiet_count AS (
    SELECT party, COUNT(DISTINCT call_sync_id) AS syncs
    FROM sync_next_to
    WHERE is_met = 0
    GROUP BY party
  ),
  -- The syncs of all, of which those of the party itself are taken off.
  total AS (
    SELECT run, SUM(syncs) AS syncs, SUM(ns) AS ns FROM party GROUP BY run
  )
SELECT
  COALESCE(party.kind, 'unrecorded') AS kind,
  of!(party, (process, cgroup)),
  cost.syncs AS syncs,
  CAST(total.syncs - COALESCE(party.syncs, 0) AS BIGINT) AS of_syncs,
  cost.ns AS cost_ns,
  CASE WHEN cost.party > 0 THEN CAST(cost.sure_ns AS BIGINT) END AS low_ns,
  CASE
    WHEN party.kind <> 'metadata'
    OR party.changes > 0 THEN compared.most_ns
  END AS high_ns,
  share!(cost.ns, total.ns - COALESCE(party.ns, 0)) AS share,
  CAST(ROUND(compared.ns) AS BIGINT) AS compared_ns,
  CAST(ROUND(compared.error_ns) AS BIGINT) AS compared_error_ns,
  CASE
    WHEN compared.party IS NOT NULL THEN COALESCE(quiet_count.syncs, 0)
  END AS quiet_syncs,
  of!(cost, (queue_ns, device_ns, commit_locking_ns)),
  cost.commit_ns AS commit_data_ns,
  of!(cost, (cache_flush_ns, cpu_ns)),
  of!(party, (bios, bytes)),
  of!(cost, (sync_id, run))
FROM cost
JOIN total USING (run)
LEFT JOIN party ON party.party = cost.party
LEFT JOIN compared ON compared.party = cost.party
LEFT JOIN quiet_count ON quiet_count.party = cost.party
WHERE
  total.syncs > COALESCE(party.syncs, 0)
  AND (COALESCE(party.kind, '') <> 'kernel' OR cost.ns + cost.device_ns > 0)
ORDER BY cost.run, cost_ns DESC, kind, process NULLS LAST, cgroup NULLS LAST;
