-- User stacks, split into frames. The columns are those of
-- sql/tables/perfetto/stack.sql.

CREATE OR REPLACE VIEW syncline_stack AS
SELECT * FROM stack_frames!() ORDER BY run, stack_id, depth;
