-- Stacks by number, at most :stacks.
SELECT place, stack FROM _page_stack WHERE place < :stacks ORDER BY place;
