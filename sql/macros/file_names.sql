-- The names of each step, each with the life of the name that the step means.
--
-- A rename, a link or a removal gives a name to another file or to none, and
-- so begins a new life of the name. The steps in one life are of one file.
--
-- Result: a row for each name of a step, with
--   run, seq, path  The step, and the name.
--   is_to           1 for the second name of a rename or a link.
--   is_change       1 if the step takes the name away, or gives it.
--   name_id         The life of the name: before the step for the name that it
--                   takes away, and after it for the one that it gives.
--
-- Example: SELECT path, COUNT(DISTINCT name_id) FROM file_names!(step)
--   GROUP BY path
CREATE PERFETTO MACRO file_names(
  -- The rows of file_steps.
  steps TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _counted AS (
      SELECT
        *,
        MIN(2 * seq + is_to) OVER (PARTITION BY run, path) AS first_id,
        MAX(CASE is_change WHEN 1 THEN 2 * seq + is_to END) OVER (
          PARTITION BY run, path
          ORDER BY seq, is_to
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS now_id,
        MAX(CASE is_change WHEN 1 THEN 2 * seq + is_to END) OVER (
          PARTITION BY run, path
          ORDER BY seq, is_to
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_id
      FROM uses_of_names!($steps)
    )
  SELECT
    seq, is_to, is_change, run, path,
    COALESCE(
      CASE WHEN is_change = 1 AND is_to = 0 THEN before_id ELSE now_id END,
      -first_id
    ) AS name_id
  FROM _counted
);

-- Engine: duckdb. It computes a window without an order while rows come from a
-- sort, and keeps nothing of them. Such a window does not begin again with a
-- name, so a step is counted from the begin of its name in a row of all.
CREATE PERFETTO MACRO file_names(
  steps TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _sorted AS (
      SELECT * FROM uses_of_names!($steps) ORDER BY run, path, seq, is_to
    ),
    _begun AS (
      SELECT
        *,
        2 * seq + is_to AS _id,
        LAG(path) OVER _before IS DISTINCT FROM path
        OR LAG(run) OVER _before IS DISTINCT FROM run AS _is_first
      FROM _sorted
      WINDOW _before AS ()
    ),
    _based AS (
      SELECT
        *,
        CAST(SUM(CAST(_is_first AS INTEGER)) OVER (
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS HUGEINT)
        << 64 AS _base
      FROM _begun
    ),
    _counted AS (
      SELECT
        *,
        MAX(CASE
          WHEN _is_first THEN _base + _id
        END) OVER _past - _base AS _first_id,
        MAX(CASE is_change
          WHEN 1 THEN _base + _id
        END) OVER _past - _base AS _now_id
      FROM _based
      WINDOW _past AS (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ),
    _known AS (
      SELECT
        *,
        CASE WHEN NOT _is_first THEN LAG(_now_id) OVER _before END AS _before_id
      FROM _counted
      WINDOW _before AS ()
    ),
    -- An id below 0 is of an earlier name.
    _named AS (
      SELECT
        *,
        CASE
          WHEN is_change = 1 AND is_to = 0 THEN _before_id
          ELSE _now_id
        END AS _last_id
      FROM _known
    )
  SELECT
    seq, is_to, is_change, run, path,
    CAST(CASE
      WHEN _last_id >= 0 THEN _last_id
      ELSE -_first_id
    END AS BIGINT) AS name_id
  FROM _named
);
