-- The syncs with a known start and end that evidence is counted against. Syncs
-- of the kernel that are no evidence are left out.
SELECT COUNT(call.dur_ns) AS of_syncs
FROM syncline_sync_call AS call
LEFT JOIN _syncline_of_kernel AS of_kernel
  ON of_kernel.run = call.run
  AND of_kernel.sync_id = call.call_sync_id
WHERE of_kernel.sync_id IS NULL;
