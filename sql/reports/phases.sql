-- Phases: the time that syncs waited for data, for the journal, for a flush.
--
-- One row per operation, file system and device. Times are sums over the
-- requests for which all parts are known (`known` of `syncs`), from the start
-- of the file system's sync function to its end. Shares are parts of that time.
-- Phases can overlap: a fast commit writes data. residue is the time that no
-- phase explains: the search for dirty pages, waits for locks, and waits for
-- writeback that somebody else has started. Only a patched kernel records
-- journal and flushes, and not for every file system. If they are not recorded,
-- their columns are null; after_ns then shows the time after the last bio.
--
-- Columns:
--   op               text   The sync call. Null without a call.
--   fs               text   The file system.
--   dev              text   Major and minor number of its device.
--   device           text   Name of the device, such as sda. Null where the
--                           recording does not have it.
--   syncs            count  Number of requests.
--   known            count  Number of requests that the times cover.
--   time_ns          ns     From start to end, summed.
--   before_ns        ns     Part of it before the submit of the first bio.
--   writeback_ns     ns     From the submit of the first bio to the completion
--                           of the last bio.
--   after_ns         ns     After the completion of the last bio. All of
--                           time_ns for a request without a bio.
--   journal_ns       ns     Waiting for or making commits of the journal.
--   flush_ns         ns     In cache flushes that the syncs issued.
--   residue_ns       ns     In none of writeback, journal and flush.
--   writeback_share  share  writeback_ns / time_ns.
--   journal_share    share  journal_ns / time_ns.
--   flush_share      share  flush_ns / time_ns.
--   residue_share    share  residue_ns / time_ns.
--   run              text   Name of the run, if the input holds several.
WITH
  request AS (
    SELECT
      run,
      op,
      fs,
      dev,
      ts_ns + dur_ns - start_ns AS time_ns,
      COALESCE(before_submit_ns, 0) AS before_ns,
      after_complete_ns,
      writeback_ns,
      journal_ns,
      flush_ns,
      residue_ns,
      bios,
      -- If the waits of a file system are recorded, a request that misses one
      -- end of a wait is left out.
      CASE
        WHEN dur_ns IS NULL
        OR start_ns IS NULL
        OR writeback_ns IS NULL THEN 0
        WHEN COUNT(residue_ns) OVER (PARTITION BY run, op, fs, dev) = 0 THEN 1
        WHEN residue_ns IS NULL THEN 0
        ELSE 1
      END AS known
    FROM syncline_sync
  ),
  total AS (
    SELECT
      run,
      op,
      fs,
      dev,
      COUNT(*) AS syncs,
      SUM(known) AS known,
      SUM(CASE WHEN known = 1 THEN time_ns END) AS time_ns,
      SUM(CASE WHEN known = 1 THEN before_ns END) AS before_ns,
      SUM(CASE WHEN known = 1 THEN writeback_ns END) AS writeback_ns,
      SUM(
        CASE
          WHEN known = 1
          AND bios = 0 THEN time_ns
          WHEN known = 1 THEN after_complete_ns
        END
      ) AS after_ns,
      SUM(CASE WHEN known = 1 THEN journal_ns END) AS journal_ns,
      SUM(CASE WHEN known = 1 THEN flush_ns END) AS flush_ns,
      SUM(CASE WHEN known = 1 THEN residue_ns END) AS residue_ns
    FROM request
    GROUP BY
      run,
      op,
      fs,
      dev
  )
SELECT
  op,
  fs,
  dev,
  device_name.value AS device,
  syncs,
  CAST(known AS BIGINT) AS known,
  CAST(time_ns AS BIGINT) AS time_ns,
  CAST(before_ns AS BIGINT) AS before_ns,
  CAST(writeback_ns AS BIGINT) AS writeback_ns,
  CAST(after_ns AS BIGINT) AS after_ns,
  CAST(journal_ns AS BIGINT) AS journal_ns,
  CAST(flush_ns AS BIGINT) AS flush_ns,
  CAST(residue_ns AS BIGINT) AS residue_ns,
  CAST(writeback_ns AS DOUBLE) / NULLIF(time_ns, 0) AS writeback_share,
  CAST(journal_ns AS DOUBLE) / NULLIF(time_ns, 0) AS journal_share,
  CAST(flush_ns AS DOUBLE) / NULLIF(time_ns, 0) AS flush_share,
  CAST(residue_ns AS DOUBLE) / NULLIF(time_ns, 0) AS residue_share,
  total.run AS run
FROM total
LEFT JOIN syncline_meta AS device_name
  ON device_name.run = total.run
  AND device_name.key = 'device_name.' || total.dev
ORDER BY
  COALESCE(time_ns, 0) DESC,
  total.run,
  op NULLS LAST,
  fs NULLS LAST,
  dev NULLS LAST;
