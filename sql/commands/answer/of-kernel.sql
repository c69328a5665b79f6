-- Of the kernel: syncs by threads of the kernel, which a driver or a server
-- makes on behalf of others: a loop device syncs its file, and nfsd those of
-- its clients. Such a thread makes no system call.
WITH kernel_thread(name) AS (VALUES (:kernel_threads))
SELECT comm, path, COUNT(*) AS syncs
FROM syncline_sync
WHERE
  op IS NULL
  AND comm IS NOT NULL
  AND EXISTS (
    SELECT 1 FROM kernel_thread WHERE syncline_sync.comm GLOB kernel_thread.name
  )
GROUP BY comm, path
ORDER BY 3 DESC, comm, path;
