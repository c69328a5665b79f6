-- Sync calls by number.
SELECT op_place, op FROM _page_request GROUP BY op_place, op ORDER BY op_place;
