-- Bystanders that delayed the slowest syncs, for the findings that read
-- _syncline_delay: rows of the report bystanders that took at least 5 % of the
-- time of these syncs, and were ahead of at least 3 of them.
--
-- `who` is own: threads of processes that sync; kernel: threads of the kernel
-- that write page cache back; other: threads of programs that submitted no bio
-- of a sync and make no sync. It is null for other threads of the kernel.
WITH
  bystander AS (SELECT :bystanders),
  -- Names of threads of processes that sync.
  own AS (
    SELECT
      bio.run AS run,
      bio.comm AS comm,
      COUNT(*) - COUNT(bio.sync_id) AS background_bios
    FROM syncline_bio AS bio
    JOIN (SELECT DISTINCT run, pid FROM syncline_sync) AS process
      ON process.run = bio.run
      AND process.pid = bio.pid
    GROUP BY bio.run, bio.comm
  )
SELECT
  CASE
    WHEN own.background_bios > 0 THEN 'own'
    WHEN bystander.comm GLOB 'kworker/*' THEN 'kernel'
    WHEN own.comm IS NULL
    AND NOT is_kernel_thread!(bystander.comm) THEN 'other'
  END AS who,
  bystander.sync_id AS sync_id,
  sync.ts_ns AS ts_ns,
  bystander.comm AS comm,
  bystander.process AS process,
  bystander.cgroup AS cgroup,
  bystander.writers AS writers,
  bystander.path AS path,
  bystander.ahead_ns AS cost_ns,
  CAST(bystander.bios AS TEXT) || ' bios, ' || CAST(bystander.bytes AS TEXT)
  || ' bytes ahead of '
  || CAST(bystander.syncs AS TEXT)
  || ' of the '
  || CAST(bystander.of_syncs AS TEXT)
  || ' slowest syncs' AS note,
  bystander.run AS run
FROM bystander
JOIN syncline_sync AS sync
  ON sync.run = bystander.run
  AND sync.sync_id = bystander.sync_id
LEFT JOIN own ON own.run = bystander.run AND own.comm = bystander.comm
WHERE
  bystander.kind = 'background'
  AND bystander.comm IS NOT NULL
  AND bystander.share >= 0.05
  AND bystander.syncs >= 3;
