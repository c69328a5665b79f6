-- Requests that are no sync of their own, because another one in the same call
-- came first: `sync` has one for each file system, msync one for each file.
--
-- Result: a row for each such request, with
--   run, sync_id  Of the request.
--   op            The call.
--
-- Example: SELECT COALESCE(sync.op, part.op) FROM syncline_sync AS sync
--   LEFT JOIN parts_of_calls!() AS part USING (run, sync_id)
CREATE PERFETTO MACRO parts_of_calls()
RETURNS TableOrSubquery
AS
(
  SELECT part.run AS run, part.sync_id AS sync_id, call.op AS op
  FROM syncline_sync AS part
  JOIN syncline_sync AS call
    ON call.run = part.run
    AND call.sync_id = part.call_sync_id
  WHERE part.call_sync_id <> part.sync_id
);
