-- Stacks by number, before several are merged.
SELECT stack, syncs, place FROM _page_raw_stack ORDER BY place;
