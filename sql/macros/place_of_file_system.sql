-- The place at which the bios of each file system are issued: most of those
-- that belong to its syncs are. On a partition, that is the whole disk.
--
-- Result: a row for each device of a file system that has such bios, with
--   run, dev  The device of the file system.
--   place     Where its bios are issued.
--
-- Example: SELECT sync_id, place FROM syncline_sync
--   JOIN place_of_file_system!() USING (run, dev)
CREATE PERFETTO MACRO place_of_file_system()
RETURNS TableOrSubquery
AS
(
  SELECT run, dev, place
  FROM (
    SELECT
      sync.run AS run,
      sync.dev AS dev,
      bio.place AS place,
      ROW_NUMBER() OVER (
        PARTITION BY sync.run, sync.dev
        ORDER BY COUNT(*) DESC, bio.place
      ) AS _number
    FROM syncline_sync AS sync
    JOIN bio_times!() AS bio USING (run, sync_id)
    GROUP BY sync.run, sync.dev, bio.place
  ) AS _place
  WHERE _number = 1
);
