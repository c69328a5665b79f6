-- Held: how long the bios of each control group waited in the queue of the
-- device at which they waited longest in all. A limit holds the bios of one
-- group, and who holds the device holds those of all.
WITH
  queued AS (
    SELECT run, dev, cgroup, COUNT(*) AS bios, SUM(queue_ns) AS queue_ns
    FROM syncline_bio
    WHERE queue_ns IS NOT NULL AND direction = 'write' AND cgroup IS NOT NULL
    GROUP BY run, dev, cgroup
  ),
  longest AS (SELECT run, dev FROM queued ORDER BY queue_ns DESC LIMIT 1)
SELECT
  queued.cgroup AS cgroup,
  queued.bios AS bios,
  CAST(queued.queue_ns AS BIGINT) AS queue_ns
FROM queued
JOIN longest ON longest.run = queued.run AND longest.dev = queued.dev
ORDER BY queued.queue_ns DESC, queued.cgroup;
