-- Lengths: how long the bios of an input without syncs took, by device.
--
-- A row is a device. `requests` counts the rows of the table that are requests
-- of the block layer, because the bios in them are not recorded, and `reads`
-- those that read, whose size is `read_bytes`. `time_ns` is the time from
-- submit to completion of all, added up, and `flush_ns` the part of it that
-- flushes took, as the report `device` measures them. The `longest_` columns
-- are of the one that took longest.
WITH
  timed AS (
    SELECT
      run, dev, bio_id,
      CASE WHEN is_request THEN 1 ELSE 0 END AS request,
      direction, bytes,
      CASE WHEN direction = 'read' THEN 1 ELSE 0 END AS read,
      comm, dur_ns, ts_ns,
      CASE
        WHEN direction = 'flush' THEN dur_ns
        WHEN rwbs LIKE 'F%' THEN queue_ns - COALESCE(requeue_ns, 0)
      END AS flush_ns,
      ROW_NUMBER() OVER by_length AS place
    FROM syncline_bio
    WHERE dev IS NOT NULL AND dur_ns IS NOT NULL
    WINDOW by_length AS (PARTITION BY run, dev ORDER BY dur_ns DESC, bio_id)
  )
SELECT
  run, dev,
  CAST(SUM(request) AS BIGINT) AS requests,
  CAST(SUM(read) AS BIGINT) AS reads,
  CAST(SUM(CASE WHEN read = 1 THEN bytes END) AS BIGINT) AS read_bytes,
  CAST(SUM(dur_ns) AS BIGINT) AS time_ns,
  CAST(SUM(flush_ns) AS BIGINT) AS flush_ns,
  COUNT(flush_ns) AS flushes,
  MAX(CASE WHEN place = 1 THEN bio_id END) AS longest_id,
  MAX(CASE WHEN place = 1 THEN dur_ns END) AS longest_ns,
  MAX(CASE WHEN place = 1 THEN ts_ns END) AS longest_ts_ns,
  MAX(CASE WHEN place = 1 THEN direction END) AS longest_direction,
  MAX(CASE WHEN place = 1 THEN request END) AS longest_is_request,
  MAX(CASE WHEN place = 1 THEN bytes END) AS longest_bytes,
  MAX(CASE WHEN place = 1 THEN comm END) AS longest_comm
FROM timed
GROUP BY run, dev
ORDER BY run, dev;
