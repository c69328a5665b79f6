-- Folded: the number of rows that code.sql returns with these parameters.
SELECT COUNT(*) AS cells
FROM (
  SELECT DISTINCT
    bin - bin % :step,
    CASE WHEN file < :files THEN file ELSE :files END,
    CASE WHEN thread < :threads THEN thread ELSE :threads END,
    CASE WHEN stack_place < :stacks THEN stack_place ELSE :stacks END
  FROM _page_request
) AS cell;
