-- Syncs that are no evidence, because threads of the kernel made them for
-- others, such as the worker of a loop device: no program can leave them out.
-- The answer of `report` counts them apart, too. If no program of a run made
-- a sync, as on a server of NFS, they are all that there is, and none is left
-- out.
SELECT sync.run AS run, sync.sync_id AS sync_id
FROM syncline_sync AS sync
JOIN syncline_sync_call AS call
  ON call.run = sync.run
  AND call.call_sync_id = sync.call_sync_id
WHERE
  call.op IS NULL
  AND is_kernel_thread!(sync.comm)
  AND sync.run IN (
    SELECT run
    FROM syncline_sync
    WHERE op IS NOT NULL OR NOT is_kernel_thread!(comm)
  );
