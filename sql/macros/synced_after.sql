-- When a folder was synced after each of some moments.
--
-- Result: a row a moment, with the columns of `keys`, and
--   run, folder, at_ns  Of the moment.
--   synced_ns           When the first sync of the folder that began then or
--                       later, and returned without an error, had ended; or
--                       one of everything. Null if there is none.
--
-- Example: SELECT seq FROM synced_after!(rename, step, (seq))
--   WHERE synced_ns IS NULL
CREATE PERFETTO MACRO synced_after(
  -- Table of moments with `run`, `folder`, `at_ns` and the columns of `keys`.
  moments TableOrSubquery,
  -- Table of steps with `run`, `op`, `path`, `ts_ns`, `end_ns`, `is_sync` and
  -- `ret`.
  steps TableOrSubquery,
  -- Columns of `moments` by which the caller knows a moment.
  keys ColumnNameList
)
RETURNS TableOrSubquery
AS
(
  WITH
    _moment AS (SELECT run, folder, at_ns, $keys FROM $moments),
    _sync AS (
      SELECT run, op, path, ts_ns, end_ns
      FROM $steps
      WHERE is_sync = 1 AND ret >= 0 AND end_ns IS NOT NULL
    ),
    _every AS (
      SELECT
        _moment.run AS run,
        _moment.folder AS folder,
        _sync.ts_ns, _sync.end_ns
      FROM (SELECT DISTINCT run, folder FROM _moment) AS _moment
      JOIN _sync ON _sync.run = _moment.run AND _sync.op = 'sync'
      UNION ALL
      SELECT run, path, ts_ns, end_ns FROM _sync WHERE path IS NOT NULL
    ),
    _point AS (
      SELECT
        run, folder,
        ts_ns AS at_ns,
        1 AS _place,
        end_ns,
        of!(_none, ($keys))
      FROM _every
      LEFT JOIN (SELECT $keys FROM _moment LIMIT 0) AS _none ON TRUE
      UNION ALL
      SELECT run, folder, at_ns, 0, CAST(NULL AS BIGINT), $keys FROM _moment
    )
  SELECT run, folder, at_ns, $keys, synced_ns
  FROM (
    SELECT
      *,
      MIN(end_ns) OVER (
        PARTITION BY run, folder
        ORDER BY at_ns, _place
        ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
      ) AS synced_ns
    FROM _point
  ) AS _seen
  WHERE _place = 0
);
