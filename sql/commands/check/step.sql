-- What threads did to files, and the syncs, in one order.
SELECT * FROM file_steps!(_syncline_check_order);
