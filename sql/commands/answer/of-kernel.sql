-- Kernel: syncs by threads of the kernel, which a driver or a server
-- makes on behalf of others: a loop device syncs its file, and nfsd those of
-- its clients. Such a thread makes no system call.
SELECT comm, path, COUNT(*) AS syncs
FROM syncline_sync
WHERE op IS NULL AND is_kernel_thread!(comm)
GROUP BY comm, path
ORDER BY 3 DESC, comm, path;
