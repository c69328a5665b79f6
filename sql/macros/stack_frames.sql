-- The frames of user stacks. They are the rows of syncline_stack.
--
-- Result: a row for each frame of a distinct stack of syncs and calls, with
--   stack_id  1, 2, 3... in each run, in the order of first use.
--   depth     0 is outermost.
--   frame     Name of the function. At depth 256, `[deeper frames]`: all frames
--             from there on.
--   stack     The folded stack, as in the other tables.
--   run
--
-- Example: SELECT frame, COUNT(*) FROM stack_frames!() GROUP BY frame
CREATE PERFETTO MACRO stack_frames()
RETURNS TableOrSubquery
AS
(
  WITH
    _use AS (
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
    _first_use AS (
      SELECT run, stack, MIN(first_ns) AS first_ns FROM _use GROUP BY run, stack
    ),
    _numbered AS (
      SELECT run, stack, ROW_NUMBER() OVER _in_order AS stack_id
      FROM _first_use
      WINDOW _in_order AS (PARTITION BY run ORDER BY first_ns, stack)
    ),
    -- Without the stack: an engine would hold a copy of it for each frame.
    _frame AS (
      SELECT run, stack_id, depth, frame
      FROM split_stacks!(_numbered)
      WHERE depth <= 256
    )
  SELECT
    _frame.stack_id, _frame.depth,
    CASE WHEN depth < 256 THEN frame ELSE '[deeper frames]' END AS frame,
    _numbered.stack, _frame.run
  FROM _frame
  CROSS JOIN _numbered
  WHERE _numbered.run = _frame.run AND _numbered.stack_id = _frame.stack_id
);
