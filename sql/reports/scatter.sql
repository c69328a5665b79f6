-- Scatter: latency against amount, one row per request (figure 6.2 of the
-- thesis).
--
-- The report covers the complete requests whose amount is known. Groups of
-- requests whose latency grows differently with the amount often differ in
-- their number of ranges.
--
-- Narrow: sync_id op path bytes bios syscall_ns writeback_ns comm
--
-- Columns:
--   sync_id       id     The request.
--   op            text   Its sync call. Null if it has none.
--   comm          text   Name of its thread.
--   path          text   Path of its file.
--   bytes         bytes  Bytes written back for it.
--   ranges        count  Number of separate ranges of file offsets.
--   bios          count  Number of its bios.
--   writeback_ns  ns     From the first bio_submit to the last bio_complete.
--   syscall_ns    ns     From the entry of the syscall to its exit.
--   run           text   Name of the run, if the input holds several.
SELECT
  sync_id, op, comm, path, bytes, ranges, bios, writeback_ns, syscall_ns, run
FROM syncline_sync
WHERE incomplete IS NULL AND bytes IS NOT NULL
ORDER BY run, sync_id;
