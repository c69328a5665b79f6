-- Blocks that commits of jbd2 write to the journal, and what a commit takes
-- longer because other programs than the one whose sync started it changed
-- metadata.
--
-- A commit has the blocks that any program has changed since the last one. Its
-- starter alone would have waited for its own changes only. These, and blocks
-- of which it is not known who changed them, count as the first ones, whatever
-- their order: the later ones are there for the others. What a block is there
-- for takes three parts of a commit: the journal submits it after the one
-- before, the device completes it after the one before, and when all are
-- complete, the journal looks at each of them until it writes the last block,
-- which is in no row, because a commit needs it whoever changed what.
--
-- The journal hands blocks over all at once, so each begins when the last one
-- is submitted.
--
-- Result: a row for each block of a commit with known changes, with
--   run, bio_id  Of the bio.
--   place        The device at which it was issued.
--   process      Name of the other program that the block is there for, else
--                null. Of several, those whose blocks the journal writes last
--                count as the last ones.
--   cgroup       Its control group. Null if it is not known.
--   from_ns      When it begins: the last submit. Not before the blocks of the
--                starter are complete, if it is there for another program.
--   submit_from_ns, submit_ns  When the one before is submitted, and when this
--                one is. The first is null for the first block.
--   look_from_ns, look_until_ns  When the journal looks at it. Null if that is
--                not recorded.
--
-- Example: SELECT process, COUNT(*) FROM journal_blocks!() GROUP BY process
CREATE PERFETTO MACRO journal_blocks()
RETURNS TableOrSubquery
AS
(
  WITH
    _bio AS (
      SELECT
        of!(bio, (run, bio_id, commit_id, ts_ns, writers, writers_cgroup)),
        COALESCE(bio.below, bio.dev) AS place,
        bio.ts_ns + bio.dur_ns AS _end_ns,
        COALESCE(bio.rwbs, '') LIKE '%F%' AS _is_last,
        CASE
          WHEN bio.writers IS NULL THEN 1
          WHEN starter.sync_id IS NULL THEN 0
          WHEN bio.writers <> COALESCE(starter.process, starter.comm, '') THEN 0
          WHEN bio.writers_cgroup <> starter.cgroup THEN 0
          ELSE 1
        END AS _is_own
      FROM syncline_bio AS bio
      JOIN syncline_journal AS journal USING (run, commit_id)
      LEFT JOIN syncline_sync AS starter
        ON starter.run = journal.run
        AND starter.sync_id = journal.sync_id
      WHERE
        bio.dur_ns IS NOT NULL
        AND bio.direction = 'write'
        AND bio.ts_ns >= journal.ts_ns + journal.dur_ns - journal.logging_ns
    ),
    _sent AS (
      SELECT
        *,
        SUM(CASE WHEN _is_last THEN 0 ELSE _is_own END) OVER _commit AS _own,
        SUM(CASE WHEN _is_last THEN 0 ELSE 1 END) OVER _commit AS _blocks,
        MAX(CASE WHEN NOT _is_last THEN ts_ns END) OVER _commit AS _sent_ns,
        MAX(CASE WHEN NOT _is_last THEN _end_ns END) OVER _commit AS _look_ns,
        MIN(CASE WHEN _is_last THEN ts_ns END) OVER _commit AS _last_ns,
        COUNT(writers) OVER _commit AS _changes
      FROM _bio
      WINDOW _commit AS (PARTITION BY run, commit_id)
    ),
    _placed AS (
      SELECT
        *,
        LAG(ts_ns) OVER _in_order AS _before_ns,
        ROW_NUMBER() OVER _in_order AS _place,
        -- Own blocks take the first places, the others the rest.
        ROW_NUMBER() OVER (
          PARTITION BY run, commit_id
          ORDER BY _is_own DESC, bio_id
        ) AS _place_of_change
      FROM _sent
      WHERE _changes > 0 AND NOT _is_last
      WINDOW _in_order AS (PARTITION BY run, commit_id ORDER BY _end_ns, bio_id)
    ),
    -- Each table is read once, and this one twice, because the SQL of a trace
    -- processor copies a table for each of its uses.
    _block AS (
      SELECT
        *,
        MAX(CASE WHEN _place <= _own THEN _end_ns END) OVER (
          PARTITION BY run, commit_id
        ) AS _own_end_ns
      FROM _placed
    )
  SELECT
    of!(_block, (run, bio_id, place)),
    CASE WHEN _changed._is_own = 0 THEN _changed.writers END AS process,
    CASE WHEN _changed._is_own = 0 THEN _changed.writers_cgroup END AS cgroup,
    CASE
      WHEN _changed._is_own = 0 THEN later!(_block._sent_ns, _block._own_end_ns)
      ELSE _block._sent_ns
    END AS from_ns,
    _block._before_ns AS submit_from_ns,
    _block.ts_ns AS submit_ns,
    _block._look_ns
    + CAST(ROUND(
      1.0 * (_block._last_ns - _block._look_ns) * (_block._place - 1)
      / _block._blocks
    ) AS BIGINT) AS look_from_ns,
    _block._look_ns
    + CAST(ROUND(
      1.0 * (_block._last_ns - _block._look_ns) * _block._place / _block._blocks
    ) AS BIGINT) AS look_until_ns
  FROM _block
  JOIN _block AS _changed
    ON _changed.run = _block.run
    AND _changed.commit_id = _block.commit_id
    AND _changed._place_of_change = _block._place
);
