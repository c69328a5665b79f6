-- User stacks, split into frames.

INCLUDE PERFETTO MODULE dev.syncline.call;

INCLUDE PERFETTO MODULE dev.syncline.sync;

-- Frames of the distinct stacks, one row each, outermost first.
CREATE OR REPLACE PERFETTO TABLE syncline_stack (
  -- Key of the stack: 1, 2, 3... in the order of first use.
  stack_id LONG,
  -- Depth of the frame. 0 is outermost.
  depth LONG,
  -- Name of the function. At depth 256, `[deeper frames]`: all frames from
  -- there on.
  frame STRING,
  -- The folded stack, as in the other tables.
  stack STRING,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
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
  -- The frames as an array of JSON.
  quoted AS (
    SELECT
      run, stack_id,
      '[' || REPLACE(json_quote(stack), ';', '","') || ']' AS frames
    FROM numbered
  ),
  part AS (
    SELECT
      quoted.run, quoted.stack_id,
      json.key AS depth,
      CASE WHEN key < 256 THEN value ELSE '[deeper frames]' END AS frame
    FROM quoted
    CROSS JOIN json_each(quoted.frames) AS json
    WHERE json.key <= 256
  )
-- Not sorted again: the sorter would hold a copy of the stack for each frame.
SELECT part.stack_id, part.depth, part.frame, numbered.stack, part.run
FROM part
CROSS JOIN numbered
WHERE numbered.run = part.run AND numbered.stack_id = part.stack_id;
