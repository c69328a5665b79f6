-- Queue, split: for each device, counters of the requests at the driver and the
-- device, of sync and of async bios, and of the bios of each process (of each
-- thread, where its process is not known). A bio counts from its issue, or from
-- its submit where the issue is not recorded.
WITH
  owner AS (SELECT pid, MIN(name) AS name FROM process GROUP BY pid),
  bio AS (
    SELECT
      COALESCE(bio.dev, 'device unknown') AS dev,
      CASE
        WHEN rwbs IS NULL THEN 'flags unknown'
        WHEN rwbs GLOB '*S*' THEN 'sync'
        ELSE 'async'
      END AS flag,
      COALESCE(owner.name, bio.comm, 'not known') AS owner_name,
      ts_ns + COALESCE(queue_ns, 0) AS from_ns,
      ts_ns + dur_ns AS until_ns
    FROM syncline_bio AS bio
    LEFT JOIN owner ON owner.pid = bio.pid
    WHERE dur_ns > COALESCE(queue_ns, 0)
  ),
  part AS (
    SELECT printf('%s %s', dev, flag) AS part, from_ns, until_ns FROM bio
    UNION ALL
    SELECT printf('%s of %s', dev, owner_name), from_ns, until_ns FROM bio
  ),
  edge AS (
    SELECT part, from_ns AS edge_ns, 1 AS step FROM part
    UNION ALL
    SELECT part, until_ns, -1 FROM part
  ),
  changed AS (
    SELECT part, edge_ns, SUM(step) AS step FROM edge GROUP BY part, edge_ns
  )
SELECT
  edge_ns AS ts,
  SUM(step) OVER (
    PARTITION BY part
    ORDER BY edge_ns
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS value,
  part
FROM changed
ORDER BY part, ts;
