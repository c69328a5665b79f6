-- How long a device served nothing but what a sync needed of the commit that it
-- started. Without neighbours, the sync would start such a commit too, so this
-- time is its own. Neighbours make it longer only unseen: by requests that are
-- not recorded, or by what the device still does for their writes after it has
-- completed them.
--
-- A commit needs its last block, which says that it is whole. The other blocks
-- may hold what somebody else changed, unless there are three in all, which is
-- the least. The last block does not count on a device whose cache is written
-- back, because emptying it takes the longer the more others wrote.
--
-- Result: a row for each sync with such a time, with
--   run, sync_id  Of the sync.
--   ns            The time. It is within the sync.
--
-- Example: SELECT SUM(ns) FROM own_commit_time!()
CREATE PERFETTO MACRO own_commit_time()
RETURNS TableOrSubquery
AS
(
  WITH
    _bio AS NOT MATERIALIZED (
      SELECT
        of!(bio, (run, bio_id, ts_ns, queue_ns, rwbs, commit_id)),
        COALESCE(below, dev) AS _place,
        -- Without an issue, the bio may be at the device from its submit on.
        ts_ns + COALESCE(queue_ns, 0) AS _issue_ns,
        ts_ns + dur_ns AS _complete_ns
      FROM syncline_bio AS bio
      WHERE dev IS NOT NULL AND dur_ns IS NOT NULL
    ),
    -- Which bios are the sync's own. Only those of commits are sorted.
    _owned AS (
      SELECT
        of!(_bio, (run, _place, _issue_ns, _complete_ns)),
        CASE
          WHEN queue_ns IS NULL THEN NULL
          WHEN rwbs LIKE '%F%' THEN CASE
            WHEN cache.value = 'write through'
            AND ROW_NUMBER() OVER last_first = 1 THEN commit_id
          END
          WHEN COUNT(*) OVER of_commit = 3 THEN commit_id
        END AS _commit_id
      FROM _bio
      LEFT JOIN syncline_meta AS cache
        ON cache.run = _bio.run
        AND cache.key = 'device_cache.' || _place
      WHERE commit_id IS NOT NULL
      WINDOW
        of_commit AS (PARTITION BY _bio.run, commit_id),
        last_first AS (
          PARTITION BY _bio.run, commit_id
          ORDER BY ts_ns DESC, bio_id DESC
        )
      UNION ALL
      SELECT run, _place, _issue_ns, _complete_ns, NULL
      FROM _bio
      WHERE commit_id IS NULL
    ),
    -- Bios of one request of the block layer are issued together.
    _served AS (
      SELECT
        run, _place, _issue_ns,
        MAX(_complete_ns) AS _complete_ns,
        CASE
          WHEN COUNT(_commit_id) = COUNT(*)
          AND MIN(_commit_id) = MAX(_commit_id) THEN MIN(_commit_id)
        END AS _commit_id
      FROM _owned
      GROUP BY run, _place, _issue_ns
    ),
    _ordered AS (
      SELECT
        *,
        MAX(_complete_ns) OVER (
          PARTITION BY run, _place
          ORDER BY _issue_ns
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS _before_ns,
        LEAD(_issue_ns) OVER (
          PARTITION BY run, _place
          ORDER BY _issue_ns
        ) AS _after_ns
      FROM _served
    )
  SELECT
    sync.run AS run,
    sync.sync_id AS sync_id,
    CAST(SUM(_complete_ns - _issue_ns) AS BIGINT) AS ns
  FROM _ordered
  JOIN syncline_journal AS journal
    ON journal.run = _ordered.run
    AND journal.commit_id = _ordered._commit_id
  JOIN syncline_sync AS sync
    ON sync.run = journal.run
    AND sync.sync_id = journal.sync_id
  WHERE
    (_before_ns IS NULL OR _before_ns <= _issue_ns)
    AND (_after_ns IS NULL OR _after_ns >= _complete_ns)
    AND sync.start_ns <= _issue_ns
    AND sync.ts_ns + sync.dur_ns >= _complete_ns
  GROUP BY sync.run, sync.sync_id
);
