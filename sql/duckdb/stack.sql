-- User stacks, split into frames. The columns and the SELECT are those of
-- sql/perfetto/stack.sql.

CREATE OR REPLACE VIEW syncline_stack AS
WITH RECURSIVE
  use AS (
    SELECT run, stack, MIN(ts_ns) AS first_ns
    FROM syncline_sync
    WHERE
      stack IS NOT NULL
    GROUP BY
      run,
      stack
    UNION ALL
    SELECT run, stack, MIN(ts_ns) AS first_ns
    FROM syncline_call
    WHERE
      stack IS NOT NULL
    GROUP BY
      run,
      stack
  ),
  first_use AS (
    SELECT run, stack, MIN(first_ns) AS first_ns FROM use GROUP BY run, stack
  ),
  numbered AS (
    SELECT
      run,
      stack,
      ROW_NUMBER() OVER (PARTITION BY run ORDER BY first_ns, stack) AS stack_id
    FROM first_use
  ),
  -- `rest` is the part that is not split yet. The `;` after the last frame lets
  -- it be split like the others.
  cut AS (
    SELECT
      run,
      stack_id,
      CAST(-1 AS BIGINT) AS depth,
      '' AS frame,
      stack || ';' AS rest
    FROM numbered
    UNION ALL
    SELECT
      run,
      stack_id,
      depth + 1,
      SUBSTR(rest, 1, INSTR(rest, ';') - 1),
      SUBSTR(rest, INSTR(rest, ';') + 1)
    FROM cut
    WHERE
      rest <> ''
  )
SELECT cut.stack_id, cut.depth, cut.frame, numbered.stack, cut.run
FROM cut
JOIN numbered ON numbered.run = cut.run AND numbered.stack_id = cut.stack_id
WHERE
  cut.depth >= 0
ORDER BY
  cut.run,
  cut.stack_id,
  cut.depth;
