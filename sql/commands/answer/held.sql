-- Held: how long the writes of each control group waited in the queue of one
-- device: the one at which a single group waited longest, over all its writes.
-- A limit holds up one group, while who keeps the device busy holds up all.
WITH
  -- How long the writes of each group waited at each device.
  queued AS (
    SELECT run, dev, cgroup, COUNT(*) AS bios, SUM(queue_ns) AS queue_ns
    FROM syncline_bio
    WHERE queue_ns IS NOT NULL AND direction = 'write' AND cgroup IS NOT NULL
    GROUP BY run, dev, cgroup
  ),
  -- The device of the group that waited longest.
  longest AS (SELECT run, dev FROM queued ORDER BY queue_ns DESC LIMIT 1)
SELECT
  queued.cgroup AS cgroup,
  queued.bios AS bios,
  CAST(queued.queue_ns AS BIGINT) AS queue_ns
FROM queued
JOIN longest ON longest.run = queued.run AND longest.dev = queued.dev
ORDER BY queued.queue_ns DESC, queued.cgroup;
