-- Whether a name is that of a thread of the kernel that submits bios, syncs for
-- others, or takes a CPU for a moment.
--
-- Recordings have no other sign of such a thread. A program may have a `/` in
-- the name of a thread, so that is no sign either. Upper and lower case differ,
-- which LIKE does not know in each engine.
--
-- Result: TRUE or FALSE. FALSE if the name is null.
--
-- Example:
--   SELECT * FROM syncline_bio WHERE NOT is_kernel_thread!(comm)
CREATE PERFETTO MACRO is_kernel_thread(
  -- The name of the thread.
  comm Expr
)
RETURNS Expr
AS
(
  COALESCE(
    -- Workers, among them flusher threads.
    SUBSTR($comm, 1, 8) = 'kworker/'
    -- The journal of ext4, and its tables of inodes while it is new.
    OR SUBSTR($comm, 1, 5) = 'jbd2/'
    OR $comm = 'ext4lazyinit'
    -- Metadata that the log of xfs holds, and its workers.
    OR SUBSTR($comm, 1, 8) = 'xfsaild/'
    OR (SUBSTR($comm, 1, 4) = 'xfs-' AND INSTR($comm, '/') > 0)
    -- Workers of btrfs.
    OR SUBSTR($comm, 1, 6) = 'btrfs-'
    -- Checkpoints, flushes, discards and garbage collection of f2fs.
    OR SUBSTR($comm, 1, 5) = 'f2fs_'
    -- Device mappers, loop devices, RAID, a mirror over the network.
    OR SUBSTR($comm, 1, 14) = 'dmcrypt_write/'
    OR (SUBSTR($comm, 1, 3) = 'dm-' AND INSTR($comm, '/') > 0)
    OR (SUBSTR($comm, 1, 4) = 'loop'
    AND SUBSTR($comm, 5, 1) BETWEEN '0' AND '9')
    OR (SUBSTR($comm, 1, 2) = 'md'
    AND SUBSTR($comm, 3, 1) BETWEEN '0' AND '9')
    OR SUBSTR($comm, 1, 5) = 'drbd_'
    -- Files of clients of NFS.
    OR $comm = 'nfsd'
    -- Pages that leave memory.
    OR (SUBSTR($comm, 1, 6) = 'kswapd'
    AND SUBSTR($comm, 7, 1) BETWEEN '0' AND '9')
    -- The parent of such threads, and a CPU without a task.
    OR $comm IN ('kthreadd', '<idle>')
    -- Soft interrupts, interrupts with a thread, the scheduler, RCU, memory.
    OR SUBSTR($comm, 1, 10) = 'ksoftirqd/'
    OR SUBSTR($comm, 1, 4) = 'irq/'
    OR SUBSTR($comm, 1, 10) = 'migration/'
    OR $comm IN ('rcu_sched', 'rcu_preempt', 'khugepaged')
    OR (SUBSTR($comm, 1, 9) = 'kcompactd'
    AND SUBSTR($comm, 10, 1) BETWEEN '0' AND '9'),
    FALSE
  )
);
