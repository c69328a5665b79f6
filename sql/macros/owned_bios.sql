-- Bios, and whose they are: for whom a device works.
--
-- The owner of a bio is the process whose sync it belongs to; else the one that
-- wrote the data; else the one whose sync started the commit; else, where
-- commits are not recorded, as on xfs, the one whose sync waits for one. A bio
-- for which none of these is known belongs to the thread that submitted it.
-- Blocks of journal_blocks! belong to who changed them instead.
--
-- Result: a row for each bio whose device and end are known, with
--   run, bio_id, direction, bytes, ts_ns, dur_ns, place  Of bio_times!. Blocks
--                of journal_blocks! begin at its from_ns.
--   issue_ns     When it was issued. Where that is not recorded, the device
--                serves one bio after the other, in the order of their
--                completions: the completion of the one before, if that is
--                after the submit.
--   process      Name of the owner. Empty if no name is known.
--   cgroup       Its control group; where that is not recorded, the only one
--                of its name. Null if it is not known.
--   part         Why it is the owner: sync, data, commit, change (as
--                journal_blocks! has it), kernel (a thread of the kernel, for
--                an unknown program), or process.
--   owner        process and cgroup in one text.
--   is_log       1 if the bio is of a commit, and no change, else 0.
--   is_metadata  1 if it is of metadata or a flush, else 0.
--   has_preflush  1 if the device flushes before it, else 0. A device that is
--                known to write through has nothing to flush.
--
-- Example: SELECT process, SUM(bytes) FROM owned_bios!() GROUP BY process
CREATE PERFETTO MACRO owned_bios()
RETURNS TableOrSubquery
AS
(
  WITH
    _sync AS NOT MATERIALIZED (
      SELECT *, COALESCE(process, comm, '') AS _name, ts_ns + dur_ns AS _end_ns
      FROM syncline_sync
    ),
    -- By itself, because a trace processor cannot parse what is nested deeper.
    _changed AS (SELECT * FROM journal_blocks!()),
    -- Who started each commit. Commits are few, so bios look for them there and
    -- not among all syncs.
    _starter AS (
      SELECT
        of!(journal, (run, commit_id)),
        of!(_sync, (sync_id, _name, cgroup))
      FROM syncline_journal AS journal
      JOIN _sync USING (run, sync_id)
    ),
    -- Only these are sorted, because other bios need no row before them.
    _unissued AS (
      SELECT
        run, bio_id,
        LAG(complete_ns) OVER (
          PARTITION BY run, place
          ORDER BY complete_ns, bio_id
        ) AS _before_ns
      FROM bio_times!()
      WHERE queue_ns IS NULL
    ),
    _bio AS NOT MATERIALIZED (
      SELECT
        of!(bio, (run, bio_id, direction, bytes, place)),
        later!(bio.ts_ns, _from_ns) AS ts_ns,
        complete_ns - later!(bio.ts_ns, _from_ns) AS dur_ns,
        later!(later!(issue_ns, _before_ns), _from_ns) AS issue_ns,
        COALESCE(
          own._name, _writer, starter._name,
          CASE WHEN bio.comm LIKE 'kworker/%' THEN 'kworker' END,
          bio.process, bio.comm, ''
        ) AS process,
        CASE
          WHEN own.sync_id IS NOT NULL THEN own.cgroup
          WHEN _writer IS NOT NULL THEN _writer_cgroup
          WHEN starter.sync_id IS NOT NULL THEN starter.cgroup
          ELSE bio.cgroup
        END AS cgroup,
        CASE
          WHEN own.sync_id IS NOT NULL THEN 'sync'
          WHEN _writer IS NOT NULL
          AND _is_change = 1 THEN 'change'
          WHEN _writer IS NOT NULL THEN 'data'
          WHEN starter.sync_id IS NOT NULL THEN 'commit'
          WHEN _is_of_kernel = 1 THEN 'kernel'
          ELSE 'process'
        END AS part,
        _is_of_kernel,
        CASE WHEN bio.commit_id > 0 THEN 1 - _is_change ELSE 0 END AS is_log,
        CASE
          WHEN _is_change = 1
          OR bio.rwbs LIKE '%M%'
          OR bio.direction = 'flush' THEN 1
          ELSE 0
        END AS is_metadata,
        CASE
          WHEN bio.rwbs LIKE 'F%'
          AND bio.direction <> 'flush'
          AND cache.value IS DISTINCT FROM 'write through' THEN 1
          ELSE 0
        END AS has_preflush
      FROM (
        SELECT
          one.*,
          -- Whose data it has, or whose change, if that is known.
          CASE
            WHEN _block.bio_id IS NULL THEN one.writers
            ELSE _block.process
          END AS _writer,
          CASE
            WHEN _block.bio_id IS NULL THEN one.writers_cgroup
            ELSE _block.cgroup
          END AS _writer_cgroup,
          CASE WHEN _block.process IS NULL THEN 0 ELSE 1 END AS _is_change,
          _block.from_ns AS _from_ns,
          CASE
            WHEN comm LIKE 'kworker/%'
            OR comm LIKE 'jbd2/%'
            OR comm LIKE 'xfsaild/%'
            OR comm LIKE 'btrfs-%'
            OR comm LIKE 'f2fs%' THEN 1
            ELSE 0
          END AS _is_of_kernel
        FROM bio_times!() AS one
        LEFT JOIN _changed AS _block
          ON _block.run = one.run
          AND _block.bio_id = one.bio_id
      ) AS bio
      LEFT JOIN _unissued ON same!(_unissued, bio, (run, bio_id))
      LEFT JOIN _sync AS own ON own.run = bio.run AND own.sync_id = bio.sync_id
      LEFT JOIN _starter AS starter
        ON starter.run = bio.run
        AND starter.commit_id = bio.commit_id
      LEFT JOIN syncline_meta AS cache
        ON cache.run = bio.run
        AND cache.key = 'device_cache.' || bio.place
    ),
    -- Waits for a log or a commit that no row of syncline_journal describes.
    _wait AS (
      SELECT
        _sync.run AS run,
        COALESCE(own.place, _sync.dev, '') AS place,
        _sync._name AS process,
        _sync.cgroup AS cgroup,
        wait.ts_ns AS at_ns,
        wait.ts_ns + wait.dur_ns AS value_ns
      FROM _sync
      JOIN syncline_wait AS wait
        ON wait.run = _sync.run
        AND wait.sync_id = _sync.sync_id
      LEFT JOIN place_of_file_system!() AS own ON same!(own, _sync, (run, dev))
      WHERE
        _sync.start_ns IS NOT NULL
        AND _sync._end_ns IS NOT NULL
        AND wait.commit_id IS NULL
        AND wait.wait <> 'flush'
    ),
    -- A bio of a thread of the kernel is for such a wait if it is submitted
    -- meanwhile; of several, for the one that ends last.
    _log AS (
      SELECT
        of!(_asked, (run, bio_id)),
        MIN(_wait.process) AS process,
        MIN(_wait.cgroup) AS cgroup
      FROM latest_until!(
        (
          SELECT *, ts_ns AS at_ns
          FROM _bio
          WHERE _is_of_kernel = 1 AND part = 'kernel'
        ),
        _wait,
        (bio_id),
        (run, place)
      ) AS _asked
      JOIN _wait USING (run, place, value_ns)
      WHERE _asked.value_ns > _asked.at_ns
      GROUP BY _asked.run, _asked.bio_id
    ),
    _named AS (
      SELECT
        of!(_bio, (run, bio_id, direction, bytes, ts_ns, dur_ns, place)),
        of!(_bio, (issue_ns, is_metadata, has_preflush)),
        COALESCE(_log.process, _bio.process) AS process,
        CASE
          WHEN _log.bio_id IS NOT NULL THEN _log.cgroup
          WHEN part <> 'kernel' THEN _bio.cgroup
        END AS cgroup,
        CASE WHEN _log.bio_id IS NOT NULL THEN 'commit' ELSE part END AS part,
        CASE WHEN _log.bio_id IS NOT NULL THEN 1 ELSE is_log END AS is_log
      FROM _bio
      LEFT JOIN _log USING (run, bio_id)
    )
  SELECT
    of!(_named, (run, bio_id, direction, bytes, ts_ns, dur_ns, place)),
    of!(_named, (issue_ns, is_metadata, has_preflush)),
    _named.process AS process,
    COALESCE(_named.cgroup, _only.cgroup) AS cgroup,
    of!(_named, (part, is_log)),
    _named.process || ' ' || COALESCE(_named.cgroup, _only.cgroup, '') AS owner
  FROM _named
  LEFT JOIN only_groups!() AS _only
    ON part <> 'kernel'
    AND same!(_only, _named, (run, process))
);
