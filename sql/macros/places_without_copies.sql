-- Places where copies of metadata are not recorded, so that the device looks
-- idle while it has them.
--
-- btrfs may write each block of metadata twice, for a sync and once more.
--
-- Result: a row for each such place, with
--   run, place  Of the bios.
--
-- Example: SELECT place FROM places_without_copies!(bio)
CREATE PERFETTO MACRO places_without_copies(
  -- Table of bios with `run`, `place`; `part`, as of owned_bios!; and
  -- `is_metadata`, 1 for metadata, else 0.
  bios TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT run, place
  FROM $bios
  GROUP BY run, place
  HAVING
    SUM(CASE WHEN part = 'process' THEN is_metadata ELSE 0 END)
    < SUM(CASE WHEN part = 'sync' THEN is_metadata ELSE 0 END)
);
