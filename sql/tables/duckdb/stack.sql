-- User stacks, split into frames. The columns are those of
-- sql/tables/perfetto/stack.sql.

CREATE OR REPLACE VIEW syncline_stack AS
WITH
  use AS (
    SELECT run, stack, MIN(ts_ns) AS first_ns
    FROM syncline_sync
    WHERE stack IS NOT NULL
    GROUP BY run, stack
    UNION ALL
    SELECT run, stack, MIN(ts_ns) AS first_ns
    FROM syncline_call
    WHERE stack IS NOT NULL
    GROUP BY run, stack
  ),
  first_use AS (
    SELECT run, stack, MIN(first_ns) AS first_ns FROM use GROUP BY run, stack
  ),
  numbered AS (
    SELECT
      run, stack,
      ROW_NUMBER() OVER (PARTITION BY run ORDER BY first_ns, stack) AS stack_id
    FROM first_use
  ),
  split AS (
    SELECT
      run, stack_id,
      UNNEST(STRING_SPLIT(stack, ';')) AS frame,
      GENERATE_SUBSCRIPTS(STRING_SPLIT(stack, ';'), 1) - 1 AS depth
    FROM numbered
  )
SELECT
  split.stack_id, split.depth,
  CASE WHEN depth < 256 THEN frame ELSE '[deeper frames]' END AS frame,
  numbered.stack, split.run
FROM split
JOIN numbered ON numbered.run = split.run AND numbered.stack_id = split.stack_id
WHERE split.depth <= 256
ORDER BY split.run, split.stack_id, split.depth;
