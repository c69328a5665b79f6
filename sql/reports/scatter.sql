-- Scatter: latency against amount, one request a row (figure 6.2 of the
-- thesis).
--
-- Complete requests whose amount is known. The number of ranges often tells
-- apart the groups in which latency grows with the amount.
--
-- Columns:
--   sync_id       id     The request.
--   op            text   Its syscall, where it has one.
--   comm          text   Its thread.
--   path          text   Its file.
--   bytes         bytes  Written back for it.
--   ranges        count  Separate runs of file offsets.
--   bios          count  Its bios.
--   writeback_ns  ns     From the first bio_submit to the last bio_complete.
--   syscall_ns    ns     From the entry of the syscall to its exit.
--   run           text   The run, where the input holds several.
SELECT
  sync_id,
  op,
  comm,
  path,
  bytes,
  ranges,
  bios,
  writeback_ns,
  syscall_ns,
  run
FROM syncline_sync
WHERE
  incomplete IS NULL
  AND bytes IS NOT NULL
ORDER BY
  run,
  sync_id;
