-- Folded stacks, split into their frames.
--
-- Result: a row a frame, outermost first, with `run`, `stack_id`,
--   depth  0 is outermost.
--   frame  Name of the function.
--
-- Example: SELECT depth, frame FROM split_stacks!(
--   (SELECT '' AS run, 1 AS stack_id, 'main;commit;fsync' AS stack)
-- )
CREATE PERFETTO MACRO split_stacks(
  -- Table with `run`, `stack_id` and `stack`, not null: frames with `;` between
  -- them.
  stacks TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    -- The frames as an array of JSON, which is what SQLite can split.
    _quoted AS (
      SELECT
        run, stack_id,
        '[' || REPLACE(json_quote(stack), ';', '","') || ']' AS frames
      FROM $stacks
    )
  SELECT run, stack_id, _json.key AS depth, _json.value AS frame
  FROM _quoted
  CROSS JOIN json_each(frames) AS _json
);

-- Engine: duckdb
CREATE PERFETTO MACRO split_stacks(
  stacks TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT
    run, stack_id,
    GENERATE_SUBSCRIPTS(STRING_SPLIT(stack, ';'), 1) - 1 AS depth,
    UNNEST(STRING_SPLIT(stack, ';')) AS frame
  FROM $stacks
);

-- Engine: spark
CREATE PERFETTO MACRO split_stacks(
  stacks TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _place AS (
      SELECT
        run, stack_id,
        SPLIT(stack, ';') AS parts,
        EXPLODE(SEQUENCE(0, SIZE(SPLIT(stack, ';')) - 1)) AS depth
      FROM $stacks
    )
  SELECT run, stack_id, depth, ELEMENT_AT(parts, depth + 1) AS frame FROM _place
);
