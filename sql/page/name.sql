-- Stacks by their numbers, up to :stacks.
SELECT place, stack FROM _page_stack WHERE place < :stacks ORDER BY place;
