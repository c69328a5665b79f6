-- Stacks by their numbers, before several are one.
SELECT stack, syncs, place FROM _page_raw_stack ORDER BY place;
