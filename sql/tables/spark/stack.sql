-- User stacks, split into frames, for Spark. The columns are those of
-- sql/tables/perfetto/stack.sql.

CREATE OR REPLACE TEMPORARY VIEW syncline_stack AS
WITH
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
  place AS (
    SELECT
      run,
      stack_id,
      SPLIT(stack, ';') AS frames,
      EXPLODE(SEQUENCE(0, SIZE(SPLIT(stack, ';')) - 1)) AS depth
    FROM numbered
  ),
  split AS (
    SELECT run, stack_id, ELEMENT_AT(frames, depth + 1) AS frame, depth
    FROM place
  )
SELECT
  split.stack_id,
  split.depth,
  CASE WHEN depth < 256 THEN frame ELSE '[deeper frames]' END AS frame,
  numbered.stack,
  split.run
FROM split
JOIN numbered ON numbered.run = split.run AND numbered.stack_id = split.stack_id
WHERE
  split.depth <= 256
ORDER BY
  split.run,
  split.stack_id,
  split.depth;
