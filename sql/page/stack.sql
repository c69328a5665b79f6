-- Stacks by their numbers, up to :stacks.
SELECT stack_place, stack
FROM _page_request
WHERE
  stack_place < :stacks
GROUP BY
  stack_place,
  stack
ORDER BY
  stack_place;
