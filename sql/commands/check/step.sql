-- What threads did to files, and the syncs, in one order.
SELECT
  seq, run, ts_ns, end_ns, least_ns, tid, pid, proc, comm, op, path, to_path,
  flags, created, offset_bytes, ret, stack, is_sync, is_dirty, empties
FROM file_steps!(_syncline_check_order);
