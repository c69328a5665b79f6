-- Requests: what was issued to devices, as a replay needs it.
--
-- Bios that were issued to one device at the same moment were merged into one
-- request if they follow each other on the device. Covers bios whose device,
-- issue and completion are known.
--
-- Columns:
--   dev        text   Device.
--   tid        id     Thread that submitted it.
--   comm       text   Name of the thread.
--   sync_id    id     Sync that it belongs to. Null for all others.
--   submit_ns  time   First submit.
--   issue_ns   time   Issue.
--   end_ns     time   Last completion.
--   sector     count  Its first sector. Null if unknown.
--   bytes      bytes  Size.
--   is_sync    count  1 if a bio has the flag S, so that somebody waits for it.
--   is_read    count  1 if it reads.
--   run        text   Name of the run, if the input holds several.
WITH
  bio AS (
    SELECT
      run,
      dev,
      tid,
      comm,
      sync_id,
      ts_ns,
      ts_ns + queue_ns AS issue_ns,
      ts_ns + dur_ns AS end_ns,
      sector,
      bytes,
      CASE
        WHEN rwbs LIKE '%S%'
        OR sync_id IS NOT NULL THEN 1
        ELSE 0
      END AS is_sync,
      CASE WHEN direction = 'read' THEN 1 ELSE 0 END AS is_read
    FROM syncline_bio
    WHERE
      dev IS NOT NULL
      AND direction IN ('write', 'read')
      AND queue_ns IS NOT NULL
      AND dur_ns IS NOT NULL
  ),
  placed AS (
    SELECT
      *,
      CASE
        WHEN (sector - LAG(sector) OVER moment) * 512 <> LAG(bytes) OVER moment
        THEN 1
        ELSE 0
      END AS is_first
    FROM bio
    WINDOW
      moment AS (
        PARTITION BY run, dev, issue_ns, is_read
        ORDER BY sector, ts_ns
      )
  ),
  numbered AS (
    SELECT
      *,
      SUM(is_first) OVER (
        PARTITION BY run, dev, issue_ns, is_read
        ORDER BY sector, ts_ns
        ROWS UNBOUNDED PRECEDING
      ) AS number
    FROM placed
  )
SELECT
  dev,
  MIN(tid) AS tid,
  MIN(comm) AS comm,
  MIN(sync_id) AS sync_id,
  MIN(ts_ns) AS submit_ns,
  issue_ns,
  MAX(end_ns) AS end_ns,
  MIN(sector) AS sector,
  CAST(SUM(bytes) AS BIGINT) AS bytes,
  MAX(is_sync) AS is_sync,
  is_read,
  run
FROM numbered
GROUP BY
  run,
  dev,
  issue_ns,
  is_read,
  number
ORDER BY
  submit_ns,
  issue_ns,
  dev,
  sector;
