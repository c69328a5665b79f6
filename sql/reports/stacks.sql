-- Stacks: the code that syncs, as the tree of a flame graph.
--
-- A row is a frame with its callers, so the same function with other callers
-- is another row. Total is the cost of the frame and of all that it called,
-- while self is its cost as the innermost frame. The rows of the frames that a
-- frame called follow its own row. In a stack of more than 256 frames, the
-- innermost of them share the row [deeper frames], and requests without a
-- stack are under [no stack].
--
-- Latencies cover the requests that have one, and are null if none has. An
-- incomplete request is counted but adds no latency.
--
-- Narrow: frame total_syscall_ns total_count self_syscall_ns total_bytes
--  total_writeback_ns
--
-- Columns:
--   frame               tree   Name of the function, [no stack] or
--                              [deeper frames].
--   depth               count  0 is outermost.
--   total_count         count  Number of requests.
--   total_syscall_ns    ns     Sum of their syscall latencies.
--   total_writeback_ns  ns     Sum of their writeback latencies.
--   total_bytes         bytes  Bytes written back for them.
--   self_count          count  Number of requests with this innermost frame.
--   self_syscall_ns     ns     Sum of their syscall latencies.
--   self_writeback_ns   ns     Sum of their writeback latencies.
--   self_bytes          bytes  Bytes written back for them.
--   path                text   The frame and its callers, joined by `;`,
--                              outermost first.
WITH RECURSIVE
  -- What the requests of each stack cost. Stacks repeat, so each is split
  -- once.
  weight AS (
    SELECT
      run, stack,
      COUNT(*) AS count,
      SUM(syscall_ns) AS syscall_ns,
      SUM(writeback_ns) AS writeback_ns,
      SUM(bytes) AS bytes
    FROM syncline_sync
    GROUP BY run, stack
  ),
  -- The frames of each stack. `callers` is the length of the text that comes
  -- before the frame, so the path of a frame can be cut out of its stack.
  frame AS (
    SELECT
      run, stack, depth, frame,
      CAST(SUM(LENGTH(frame) + 1) OVER outer_frames AS BIGINT) - LENGTH(frame)
      - 1 AS callers,
      MAX(depth) OVER (PARTITION BY run, stack_id) AS innermost
    FROM syncline_stack
    WINDOW outer_frames AS (PARTITION BY run, stack_id ORDER BY depth)
  ),
  -- Each frame of each stack, with its path and the cost of the stack.
  step AS (
    SELECT
      depth, frame,
      SUBSTR(weight.stack, 1, callers) || frame AS path,
      depth = innermost AS is_self,
      count, syscall_ns, writeback_ns, bytes
    FROM weight
    JOIN frame ON frame.run = weight.run AND frame.stack = weight.stack
    UNION ALL
    SELECT
      0, '[no stack]', '[no stack]', TRUE, count, syscall_ns, writeback_ns,
      bytes
    FROM weight
    WHERE stack IS NULL
  ),
  -- Stacks share their outer frames: what has the same path is one node.
  node AS (
    SELECT
      path, depth, frame,
      CASE
        WHEN depth > 0 THEN SUBSTR(path, 1, LENGTH(path) - LENGTH(frame) - 1)
      END AS caller,
      SUM(count) AS total_count,
      SUM(syscall_ns) AS total_syscall_ns,
      SUM(writeback_ns) AS total_writeback_ns,
      SUM(bytes) AS total_bytes,
      sum_where!(count, is_self) AS self_count,
      sum_where!(syscall_ns, is_self) AS self_syscall_ns,
      sum_where!(writeback_ns, is_self) AS self_writeback_ns,
      sum_where!(bytes, is_self) AS self_bytes
    FROM step
    GROUP BY path, depth, frame
  ),
  -- The place of each node among those of the same caller, with leading zeros,
  -- so that places sort as text.
  sibling AS (
    SELECT
      path, depth, caller,
      SUBSTR(
        '0000000'
        || CAST(ROW_NUMBER() OVER (
          PARTITION BY depth, caller
          ORDER BY total_count DESC, path
        ) AS TEXT),
        -8
      ) AS place
    FROM node
  ),
  -- The places of the callers and of the frame, one after the other, sort the
  -- tree.
  placed AS (
    SELECT path, place FROM sibling WHERE depth = 0
    UNION ALL
    SELECT sibling.path, placed.place || sibling.place
    FROM placed
    JOIN sibling ON sibling.caller = placed.path
  )
SELECT
  node.frame, node.depth,
  CAST(total_count AS BIGINT) AS total_count,
  CAST(total_syscall_ns AS BIGINT) AS total_syscall_ns,
  CAST(total_writeback_ns AS BIGINT) AS total_writeback_ns,
  CAST(total_bytes AS BIGINT) AS total_bytes,
  self_count, self_syscall_ns, self_writeback_ns, self_bytes, node.path
FROM node
JOIN placed ON placed.path = node.path
ORDER BY placed.place;
