-- Whether the data of a file were synced at each of some moments.
--
-- A sync covers what was written before it began, and only if it has returned
-- without an error. So data are synced if a sync that has ended until the
-- moment began after the last write before the moment had ended.
--
-- Result: a row a moment, with the columns of `keys`, and
--   run, file_id, at_ns  Of the moment.
--   dirty_seq  The last step before the moment that changed data. Null if none
--              did.
--   is_synced  1 if a sync covers it, or if there is none; 0 if not.
--
-- Example: SELECT seq, is_synced FROM sync_state!(rename, step, (seq))
CREATE PERFETTO MACRO sync_state(
  -- Table of moments with `run`, `file_id`, `at_ns` and the columns of `keys`.
  moments TableOrSubquery,
  -- Table of steps with `run`, `file_id`, `seq`, `op`, `ts_ns`, `end_ns`,
  -- `is_sync`, `is_dirty` and `ret`.
  steps TableOrSubquery,
  -- Columns of `moments` by which the caller knows a moment.
  keys ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _moment AS (SELECT run, file_id, $keys, at_ns FROM $moments),
    _file AS (SELECT DISTINCT run, file_id FROM _moment),
    _fact AS (
      SELECT
        step.run AS run,
        step.file_id AS file_id,
        CASE step.is_sync WHEN 1 THEN step.end_ns ELSE step.ts_ns END AS at_ns,
        step.is_sync AS is_sync,
        CASE step.is_sync WHEN 0 THEN step.seq END AS dirty_seq,
        CASE step.is_sync WHEN 0 THEN step.end_ns END AS dirty_ns,
        CASE
          WHEN step.is_sync = 0 AND step.end_ns IS NULL THEN 1
          ELSE 0
        END AS is_open,
        CASE step.is_sync WHEN 1 THEN step.ts_ns END AS sync_ns
      FROM $steps AS step
      JOIN _file ON _file.run = step.run AND _file.file_id = step.file_id
      WHERE
        step.is_dirty = 1
        OR (step.is_sync = 1 AND step.ret >= 0 AND step.end_ns IS NOT NULL)
    ),
    -- At one time, a sync has ended before the next write begins.
    _point AS (
      SELECT
        run, file_id, at_ns,
        CASE is_sync WHEN 1 THEN 0 ELSE 1 END AS _place,
        dirty_seq, dirty_ns, is_open, sync_ns,
        of!(_none, ($keys))
      FROM _fact
      LEFT JOIN (SELECT $keys FROM _moment LIMIT 0) AS _none ON TRUE
      UNION ALL
      SELECT
        run, file_id, at_ns, 2,
        CAST(NULL AS BIGINT),
        CAST(NULL AS BIGINT),
        0,
        CAST(NULL AS BIGINT),
        $keys
      FROM _moment
    ),
    _seen AS (
      SELECT
        *,
        MAX(dirty_seq) OVER _until AS _last_seq,
        MAX(dirty_ns) OVER _until AS _last_ns,
        MAX(is_open) OVER _until AS _any_open,
        MAX(sync_ns) OVER _until AS _synced_ns
      FROM _point
      WINDOW
        _until AS (
          PARTITION BY run, file_id
          ORDER BY at_ns, _place
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
    ),
    -- sync() covers all files, unless a file system refused its part.
    _every AS (
      SELECT run, end_ns AS at_ns, ts_ns AS value_ns
      FROM $steps
      WHERE op = 'sync' AND ret >= 0
    ),
    _asked AS (
      SELECT
        run, file_id, at_ns,
        $keys,
        _last_seq, _last_ns, _any_open, _synced_ns
      FROM _seen
      WHERE _place = 2
    ),
    _covered AS (
      SELECT *
      FROM latest_until!(
        _asked, _every,
        (file_id, $keys, _last_seq, _last_ns, _any_open, _synced_ns),
        (run)
      )
    )
  SELECT
    run, file_id, at_ns,
    $keys,
    _last_seq AS dirty_seq,
    CASE
      WHEN _last_seq IS NULL THEN 1
      WHEN _any_open = 1 THEN 0
      WHEN COALESCE(later!(_synced_ns, value_ns), -1) >= _last_ns THEN 1
      ELSE 0
    END AS is_synced
  FROM _covered
);
