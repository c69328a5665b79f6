-- Unfollowed: syncs in which the recording does not say when their threads
-- waited for a CPU, and how long they took.
WITH
  sync AS (
    SELECT
      dur_ns, cpu_wait_ns,
      CASE WHEN cpu_wait_ns IS NULL THEN dur_ns END AS unknown_ns
    FROM syncline_sync
    WHERE start_ns IS NOT NULL AND dur_ns IS NOT NULL
  )
SELECT
  COUNT(*) AS syncs,
  COUNT(cpu_wait_ns) AS known,
  CAST(COALESCE(SUM(dur_ns), 0) AS BIGINT) AS dur_ns,
  CAST(COALESCE(SUM(unknown_ns), 0) AS BIGINT) AS unknown_ns
FROM sync;
