-- Block I/O: the bios of a file system, from submit to completion.

INCLUDE PERFETTO MODULE dev.syncline.known;

-- Bios, one row each, in the order of time.
CREATE OR REPLACE PERFETTO TABLE syncline_bio (
  -- Key of the bio: 1, 2, 3... in the order of the bios' first events.
  bio_id LONG,
  -- Request that the bio belongs to. Null for background writeback, for reads,
  -- and if it is not known whose the bio is.
  sync_id LONG,
  -- The commit of `syncline_journal` in which the thread submitted the bio,
  -- which holds data of files or goes to the journal. Null if the thread was in
  -- none, and if its commit, or the start of that, is not recorded. Bios of
  -- btrfs, f2fs and xfs have none, because their commits are not recorded or
  -- other threads write the log.
  commit_id LONG,
  -- Request id given by the tracer, as in syncline_sync. 0 for background
  -- writeback. An id above 2^63-1 is shown as its two's complement. Null if the
  -- source records no id.
  id LONG,
  -- Time of bio_submit. If the submit is missing, time of the first folio, of
  -- the first event of the request, or of the completion.
  ts_ns TIMESTAMP,
  -- Duration from bio_submit to bio_complete. Null if the submit or the
  -- completion is missing.
  dur_ns DURATION,
  -- From bio_submit to the issue: the time before the block layer handed the
  -- bio, or its first part, to the driver. A flush before the write is part of
  -- it. If a partition or a device mapper redirects the bio, the time ends when
  -- the driver of the device below gets it. Null if the submit is missing or
  -- the issue is not recorded.
  queue_ns DURATION,
  -- From the issue to bio_complete. On a device without FUA, the flush after a
  -- write with FUA is part of it. Null if the completion is missing or the
  -- issue is not recorded.
  device_ns DURATION,
  -- How often the driver returned the bio, or a part of it, to the queue. Null
  -- if it did not, and if the issue is not recorded.
  requeues LONG,
  -- From the first issue of the bio to the last one. It is a part of queue_ns.
  -- Null if the driver returned nothing, and if the issue is not recorded.
  requeue_ns DURATION,
  -- Number of requests into which the block layer split the bio. Null if it did
  -- not, and if the issue is not recorded.
  parts LONG,
  -- 0, or the negative errno with which it completed. Null if the completion is
  -- missing or does not record it.
  error LONG,
  -- Kernel address of the bio, as `0x...`. The kernel reuses addresses. Null if
  -- the source records no address.
  bio STRING,
  -- Device, as `major,minor`, or the name of the disk (`vdb`) if the recorder
  -- prints only that, as biosnoop does. Null if unknown.
  dev STRING,
  -- Device below, as `major,minor`: where a partition or a device mapper
  -- redirected the bio. Null if it was not redirected, and if its remap is not
  -- recorded.
  below STRING,
  -- First sector. Null if unknown.
  sector LONG,
  -- Total size of the folios that were added to it. Size of the bio if not all
  -- of its folios are recorded. It is 0 for a flush without data; a flush with
  -- data is a write, and has the size of its data. Null if neither is recorded,
  -- or if the log may begin within the bio.
  bytes LONG,
  -- Number of folios. Null if its folios are not recorded, or not all of them.
  folios LONG,
  -- Number of separate ranges of file offsets, after joining adjacent ones.
  -- Null if its folios are not recorded, or not all of them.
  ranges LONG,
  -- Lowest file offset of the folios. Null without a folio, or if not all of
  -- them are recorded.
  first_offset LONG,
  -- End of the folio with the highest file offset: the offset of the first byte
  -- after it. Null without a folio, or if not all of them are recorded.
  last_offset LONG,
  -- `write`, `read`, or `flush` for a bio without data that only empties the
  -- cache of the device. `discard` and `zeroes` move no data either: their
  -- bytes are those of the sectors that the device forgets or fills. `unknown`
  -- is an operation that the kernel does not name, on older kernels a write of
  -- zeroes or an append to a zone. A bio whose flags are not recorded counts as
  -- a write, because only recorders of writes leave them out; but a table of
  -- biosnoop without flags has the direction as the tool prints it, and
  -- `unknown` where it prints none.
  direction STRING,
  -- Whether the row is a request of the block layer, because the bios in it are
  -- not in the log: it may hold several. Its ts_ns is when it began or entered
  -- the queue of the scheduler (`block_io_start`, `block_rq_insert`), or else
  -- its issue, and its dur_ns counts from there. Without a known issue before
  -- it, its queue_ns is null.
  is_request BOOL,
  -- Flags of the bio, as the kernel prints them: `W` for a write or `R` for a
  -- read, after it `F` for FUA, `A` for readahead, `S` for sync, `M` for
  -- metadata. `D` is a discard, `DE` a secure erase, `WZ` a write of zeroes,
  -- `ZA` an append to a zone, `N` an operation without a name. An `F` before
  -- the `W` is a flush before the write, and `FF` the request of a flush. Null
  -- if they are not recorded.
  rwbs STRING,
  -- Inode whose page cache the bio writes or reads, if it belongs to no
  -- request. Null for a bio of a request, which has the file; for several
  -- files; for metadata, direct I/O and a journal; if folios are not recorded.
  ino LONG,
  -- Path of that inode, from a sync of the file or from the recorder's table of
  -- files. Null if it is not known, or if the number may have been that of
  -- several files.
  path STRING,
  -- Thread that submitted the bio. If the submit is missing, the thread that
  -- added its first folio. Null if unknown.
  tid LONG,
  -- Process of that thread. Null if the source only has threads.
  pid LONG,
  -- Name of that thread. Null if unknown.
  comm STRING,
  -- Name of that process. Null if unknown.
  process STRING,
  -- Control group of that process, as a path. It is the one in which the
  -- recorder last saw the process. A flusher thread has a control group of its
  -- own, not the one of the writers. Null if unknown.
  cgroup STRING,
  -- Process that made the page cache dirty which the bio writes: its name, or
  -- `several (a, b)`, the one that made most dirty first. It is inferred,
  -- because it is whoever made folios of the same file dirty during the
  -- recording. A worker of the kernel counts only if nobody else did. For a
  -- block of ext4's journal, it is the process that was the first to change a
  -- block in the transaction: inferred, because the journal writes blocks in
  -- the order in which handles were closed. Null if none is known, if the bio
  -- writes several files, or neither page cache of a file nor a block of a
  -- journal. Null, too, for a block that lists others, for blocks that a worker
  -- of the kernel changed, and for all of a commit whose handles are not all
  -- recorded.
  writers STRING,
  -- Control group of the writers, or `several (a, b)`. Inferred like them. Null
  -- if there is no writer, or if that of one of them is not known.
  writers_cgroup STRING,
  -- `sync` if the bio belongs to a request, else `background`. Null for a read
  -- and a discard, and where nothing says whether the bio belongs to a request:
  -- in a recording that shows no syncs (`syncs_recorded` in `syncline_meta` is
  -- `no`), for a request of the block layer, and for a bio whose thread may be
  -- in a sync without a start in the log.
  origin STRING,
  -- Confidence in the relation of the bio to its request: `exact`, `inferred`
  -- or `unknown`. A bio without a request is `inferred` if a line is torn that
  -- may have said whose it is or which page cache it holds, or if its
  -- completion is lost and the completion of its request is used. Null for
  -- other bios without a request.
  confidence STRING,
  -- What is missing: `start` (the submit) or `end` (the completion). Null if
  -- the bio is complete.
  incomplete STRING,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
WITH
  bio AS MATERIALIZED (
    SELECT
      slice.ts, slice.dur, slice.track_id, slice.arg_set_id, known.bio_error,
      known.derives = 1
      AND extract_arg(arg_set_id, 'debug.full') IS NULL AS derives,
      extract_arg(arg_set_id, 'debug.sync_id') AS owner,
      extract_arg(arg_set_id, 'debug.bytes') AS size,
      extract_arg(arg_set_id, 'debug.tid') AS tid,
      extract_arg(arg_set_id, 'debug.bio') AS address,
      COALESCE(
        extract_arg(arg_set_id, 'debug.id'),
        iif(
          known.derives = 1
          AND extract_arg(arg_set_id, 'debug.full') IS NULL
          AND known.id_offset IS NOT NULL,
          COALESCE(
            extract_arg(arg_set_id, 'debug.sync_id') + known.id_offset,
            0
          ),
          NULL
        )
      ) AS request_id,
      extract_arg(arg_set_id, 'debug.incomplete') AS missing,
      extract_arg(arg_set_id, 'debug.rwbs') AS flags,
      (extract_arg(arg_set_id, 'debug.unsubmitted') IS NOT NULL) AS is_request,
      extract_arg(arg_set_id, 'debug.origin_unknown') AS origin_unknown
    FROM slice
    CROSS JOIN _syncline_known AS known
    WHERE category = 'syncline.bio'
  ),
  counted AS MATERIALIZED (
    SELECT
      *,
      -- The slice of a bio with an unknown end has duration 0.
      iif(missing IS NULL, dur, NULL) AS whole_dur,
      COALESCE(
        extract_arg(arg_set_id, 'debug.folios'),
        -- As many pages as it has bytes.
        iif(
          derives
          AND request_id IS NOT NULL
          AND size BETWEEN 0 AND 1099511627775,
          (size + 4095) / 4096,
          NULL
        )
      ) AS folio_count,
      CASE
        WHEN extract_arg(arg_set_id, 'debug.folios') > 0 THEN 'write'
        WHEN flags IS NULL THEN COALESCE(
          extract_arg(arg_set_id, 'debug.direction'),
          'write'
        )
        WHEN flags LIKE '%R%' THEN 'read'
        WHEN flags LIKE '%D%' THEN 'discard'
        WHEN flags LIKE '%WZ%' THEN 'zeroes'
        WHEN flags LIKE 'N%' THEN 'unknown'
        WHEN flags LIKE 'F%'
        AND COALESCE(size, 0) = 0 THEN 'flush'
        ELSE 'write'
      END AS direction
    FROM bio
  )
SELECT
  extract_arg(arg_set_id, 'debug.bio_id') AS bio_id,
  extract_arg(arg_set_id, 'debug.sync_id') AS sync_id,
  extract_arg(arg_set_id, 'debug.commit_id') AS commit_id,
  request_id AS id,
  ts AS ts_ns,
  whole_dur AS dur_ns,
  extract_arg(arg_set_id, 'debug.queue_ns') AS queue_ns,
  COALESCE(
    extract_arg(arg_set_id, 'debug.device_ns'),
    iif(derives, whole_dur - extract_arg(arg_set_id, 'debug.queue_ns'), NULL)
  ) AS device_ns,
  extract_arg(arg_set_id, 'debug.requeues') AS requeues,
  extract_arg(arg_set_id, 'debug.requeue_ns') AS requeue_ns,
  extract_arg(arg_set_id, 'debug.parts') AS parts,
  COALESCE(
    extract_arg(arg_set_id, 'debug.error'),
    iif(
      derives
      AND extract_arg(arg_set_id, 'debug.incomplete') IS NOT 'end',
      bio_error, NULL
    )
  ) AS error,
  -- A pointer argument, which SQL shows as a number: a kernel address without
  -- its leading ffff or ff. An address that could be mistaken is a text.
  CASE
    WHEN typeof(address) = 'text' THEN address
    WHEN address BETWEEN 1 << 47 AND (1 << 48) - 1 THEN printf(
      '0x%x',
      address - (1 << 48)
    )
    WHEN address BETWEEN 1 << 48 AND (1 << 56) - 1 THEN printf(
      '0x%x',
      address - (1 << 56)
    )
    WHEN address IS NOT NULL THEN printf('0x%x', address)
  END AS bio,
  COALESCE(extract_arg(arg_set_id, 'debug.dev'), track.dev) AS dev,
  extract_arg(arg_set_id, 'debug.below') AS below,
  extract_arg(arg_set_id, 'debug.sector') AS sector,
  extract_arg(arg_set_id, 'debug.bytes') AS bytes,
  folio_count AS folios,
  COALESCE(
    extract_arg(arg_set_id, 'debug.ranges'),
    iif(
      derives
      AND request_id IS NOT NULL
      AND size BETWEEN 0 AND 1099511627775,
      size > 0,
      NULL
    )
  ) AS ranges,
  extract_arg(arg_set_id, 'debug.first_offset') AS first_offset,
  COALESCE(
    extract_arg(arg_set_id, 'debug.last_offset'),
    iif(derives, extract_arg(arg_set_id, 'debug.first_offset') + size, NULL)
  ) AS last_offset,
  direction, is_request,
  extract_arg(arg_set_id, 'debug.rwbs') AS rwbs,
  extract_arg(arg_set_id, 'debug.ino') AS ino,
  extract_arg(arg_set_id, 'debug.path') AS path,
  counted.tid AS tid,
  COALESCE(extract_arg(arg_set_id, 'debug.pid'), thread.pid) AS pid,
  COALESCE(extract_arg(arg_set_id, 'debug.comm'), thread.comm) AS comm,
  COALESCE(extract_arg(arg_set_id, 'debug.process'), known.process) AS process,
  COALESCE(extract_arg(arg_set_id, 'debug.cgroup'), known.cgroup) AS cgroup,
  extract_arg(arg_set_id, 'debug.writers') AS writers,
  extract_arg(arg_set_id, 'debug.writers_cgroup') AS writers_cgroup,
  CASE
    WHEN owner IS NOT NULL THEN 'sync'
    WHEN NOT is_request
    AND origin_unknown IS NULL
    AND direction IN ('write', 'flush')
    AND NOT EXISTS (
      SELECT 1
      FROM slice
      WHERE
        category = 'syncline.meta'
        AND extract_arg(arg_set_id, 'debug.syncs_recorded') = 'no'
    ) THEN 'background'
  END AS origin,
  -- The trace holds the confidence only if it is not exact.
  COALESCE(
    extract_arg(arg_set_id, 'debug.confidence'),
    iif(owner IS NULL, NULL, 'exact')
  ) AS confidence,
  extract_arg(arg_set_id, 'debug.incomplete') AS incomplete,
  '' AS run
FROM counted
LEFT JOIN _syncline_track AS track
  ON counted.derives
  AND track.track_id = counted.track_id
LEFT JOIN _syncline_thread AS thread
  ON counted.derives
  AND thread.tid = counted.tid
LEFT JOIN _syncline_process AS known
  ON counted.derives
  AND known.pid = COALESCE(extract_arg(arg_set_id, 'debug.pid'), thread.pid)
ORDER BY ts_ns, bio_id;

-- Bios are looked up by request more often than by time.
CREATE OR REPLACE PERFETTO INDEX _syncline_bio_sync_id
ON syncline_bio(sync_id);
