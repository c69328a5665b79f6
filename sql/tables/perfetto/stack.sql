-- User stacks, split into frames.
--
-- The subquery is stack_frames!() of sql/macros/, written out by `python -m
-- tools.columns`.

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
-- Not sorted again: the sorter would hold a copy of the stack for each frame.
SELECT stack_id, depth, frame, stack, run
FROM (
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
      SELECT run, stack, ROW_NUMBER() OVER in_order AS stack_id
      FROM first_use
      WINDOW in_order AS (PARTITION BY run ORDER BY first_ns, stack)
    ),
    frame AS (
      SELECT run, stack_id, depth, frame
      FROM (
        WITH
          _split_stacks_quoted AS (
            SELECT
              run, stack_id,
              '[' || REPLACE(json_quote(stack), ';', '","') || ']' AS frames
            FROM numbered
          )
        SELECT
          run, stack_id,
          _split_stacks_json.key AS depth,
          _split_stacks_json.value AS frame
        FROM _split_stacks_quoted
        CROSS JOIN json_each(frames) AS _split_stacks_json
      )
      WHERE depth <= 256
    )
  SELECT
    frame.stack_id, frame.depth,
    CASE WHEN depth < 256 THEN frame ELSE '[deeper frames]' END AS frame,
    numbered.stack, frame.run
  FROM frame
  CROSS JOIN numbered
  WHERE numbered.run = frame.run AND numbered.stack_id = frame.stack_id
);
