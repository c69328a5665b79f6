-- Stacks: the code that syncs, as the tree of a flame graph.
--
-- A row is a frame with its callers: the same function with other callers is
-- another row. Total is the cost of the frame and of all that it called. Self
-- is its cost as the innermost frame. Requests without a stack are under [no
-- stack]. Latencies cover the requests that have one, and are null if none has.
-- An incomplete request is counted but adds no latency. The rows of the frames
-- that a frame called follow its own row. In a stack of more than 256 frames,
-- the innermost of them share the row [deeper frames].
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
  known_stack AS (
    SELECT run, stack_id, stack FROM syncline_stack WHERE depth = 0
  ),
  frame AS (
    SELECT
      run, stack_id, depth, frame,
      -- Length of the folded stack up to this frame.
      SUM(LENGTH(frame) + 1) OVER (PARTITION BY run, stack_id ORDER BY depth)
      - 1 AS reach,
      MAX(depth) OVER (PARTITION BY run, stack_id) AS innermost
    FROM syncline_stack
  ),
  step AS (
    SELECT
      frame.depth, frame.frame,
      SUBSTR(weight.stack, 1, CAST(frame.reach - LENGTH(frame.frame) AS BIGINT))
      || frame.frame AS path,
      CASE WHEN frame.depth = frame.innermost THEN 1 ELSE 0 END AS self,
      weight.count, weight.syscall_ns, weight.writeback_ns, weight.bytes
    FROM weight
    JOIN known_stack
      ON known_stack.run = weight.run
      AND known_stack.stack = weight.stack
    JOIN frame
      ON frame.run = known_stack.run
      AND frame.stack_id = known_stack.stack_id
    UNION ALL
    SELECT
      0, '[no stack]', '[no stack]', 1, count, syscall_ns, writeback_ns, bytes
    FROM weight
    WHERE stack IS NULL
  ),
  node AS (
    SELECT
      path, depth, frame,
      SUM(count) AS total_count,
      SUM(syscall_ns) AS total_syscall_ns,
      SUM(writeback_ns) AS total_writeback_ns,
      SUM(bytes) AS total_bytes,
      SUM(count * self) AS self_count,
      -- 0 without own requests; null if none of them has a known value.
      CASE
        WHEN MAX(self) = 0 THEN 0
        ELSE SUM(CASE WHEN self = 1 THEN syscall_ns END)
      END AS self_syscall_ns,
      CASE
        WHEN MAX(self) = 0 THEN 0
        ELSE SUM(CASE WHEN self = 1 THEN writeback_ns END)
      END AS self_writeback_ns,
      CASE
        WHEN MAX(self) = 0 THEN 0
        ELSE SUM(CASE WHEN self = 1 THEN bytes END)
      END AS self_bytes
    FROM step
    GROUP BY path, depth, frame
  ),
  sibling AS (
    SELECT
      path, depth,
      CASE
        WHEN depth > 0 THEN SUBSTR(path, 1, LENGTH(path) - LENGTH(frame) - 1)
      END AS parent,
      ROW_NUMBER() OVER (
        PARTITION BY
          depth,
          CASE
            WHEN depth > 0 THEN SUBSTR(
              path, 1,
              LENGTH(path) - LENGTH(frame) - 1
            )
          END
        ORDER BY total_count DESC, path
      ) AS place
    FROM node
  ),
  -- The concatenated places of the callers and the frame sort the tree.
  placed AS (
    SELECT path, SUBSTR('0000000' || CAST(place AS TEXT), -8) AS place
    FROM sibling
    WHERE depth = 0
    UNION ALL
    SELECT
      sibling.path,
      placed.place || SUBSTR('0000000' || CAST(sibling.place AS TEXT), -8)
    FROM placed
    JOIN sibling ON sibling.parent = placed.path
  )
SELECT
  node.frame, node.depth,
  CAST(node.total_count AS BIGINT) AS total_count,
  CAST(node.total_syscall_ns AS BIGINT) AS total_syscall_ns,
  CAST(node.total_writeback_ns AS BIGINT) AS total_writeback_ns,
  CAST(node.total_bytes AS BIGINT) AS total_bytes,
  CAST(node.self_count AS BIGINT) AS self_count,
  CAST(node.self_syscall_ns AS BIGINT) AS self_syscall_ns,
  CAST(node.self_writeback_ns AS BIGINT) AS self_writeback_ns,
  CAST(node.self_bytes AS BIGINT) AS self_bytes,
  node.path
FROM node
JOIN placed ON placed.path = node.path
ORDER BY placed.place;
