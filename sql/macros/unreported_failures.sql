-- Requests of sync() that wrote in vain, and return nothing: sync() returns no
-- error, and neither does the part of it that writes data.
--
-- Result: a row for each, with
--   run, sync_id, call_sync_id, dev  Of the request.
--   ret  The error of its bios.
--
-- Example: SELECT COUNT(*) FROM unreported_failures!()
CREATE PERFETTO MACRO unreported_failures()
RETURNS TableOrSubquery
AS
(
  SELECT
    part.run AS run,
    part.sync_id AS sync_id,
    part.call_sync_id AS call_sync_id,
    part.dev AS dev,
    MIN(bio.error) AS ret
  FROM syncline_sync AS part
  JOIN syncline_bio AS bio ON bio.run = part.run AND bio.sync_id = part.sync_id
  JOIN syncline_sync AS call
    ON call.run = part.run
    AND call.sync_id = part.call_sync_id
  WHERE part.ret IS NULL AND bio.error < 0 AND call.op = 'sync'
  GROUP BY part.run, part.sync_id, part.call_sync_id, part.dev
);
