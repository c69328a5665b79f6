-- The syncs of a file that had lost data before the sync began: a write of the
-- data failed, and until the sync ends, nobody has written them without error.
--
-- The kernel reports such an error only once and then marks the data as clean,
-- so a later sync may succeed although they are lost.
--
-- Result: a row for each such sync, with `run`, `sync_id` and `lost_bytes`, the
-- size of the lost data; null if a part of the size is not known. Data
-- whose write failed twice count once, because the second try begins at the
-- same place of the file.
--
-- Example: SELECT sync_id, lost_bytes FROM lost_before!(sync, bio)
CREATE PERFETTO MACRO lost_before(
  -- Table of syncs with `run`, `sync_id`, `dev`, `ino`, `begin_ns`, `end_ns`.
  syncs TableOrSubquery,
  -- Table of bios with the columns of syncline_bio; `file_dev` and `file_ino`,
  -- the device and the inode of the file; `end_ns`; and `has_data`.
  bios TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _lost AS (SELECT * FROM $bios WHERE has_data AND error < 0),
    -- When the same data were written without an error: at the same sectors of
    -- the device, or at the same place of the file.
    _again AS (
      SELECT of!(_lost, (run, bio_id)), MIN(_bio.end_ns) AS _end_ns
      FROM _lost
      JOIN $bios AS _bio
        ON _bio.run = _lost.run
        AND _bio.dev = _lost.dev
        AND _bio.ts_ns >= _lost.end_ns
        AND _bio.has_data
        AND _bio.error = 0
      WHERE
        (_bio.sector <= _lost.sector
        AND _bio.sector * 512 + _bio.bytes >= _lost.sector * 512 + _lost.bytes)
        OR (_bio.file_ino = _lost.file_ino
        AND _bio.first_offset <= _lost.first_offset
        AND _bio.last_offset >= _lost.last_offset)
      GROUP BY _lost.run, _lost.bio_id
    ),
    -- Each place of a file that a sync lacks, however often its write failed.
    _place AS (
      SELECT
        _sync.run AS run,
        _sync.sync_id AS sync_id,
        CASE
          WHEN COUNT(*) = COUNT(_lost.bytes) THEN MAX(_lost.bytes)
        END AS _bytes
      FROM _lost
      JOIN $syncs AS _sync
        ON _sync.run = _lost.run
        AND _sync.ino = _lost.file_ino
        AND _sync.dev = _lost.file_dev
        AND _sync.begin_ns >= _lost.end_ns
      LEFT JOIN _again ON same!(_again, _lost, (run, bio_id))
      WHERE _again._end_ns IS NULL OR _again._end_ns > _sync.end_ns
      GROUP BY
        _sync.run, _sync.sync_id, _lost.first_offset,
        CASE WHEN _lost.first_offset IS NULL THEN _lost.sector END
    )
  SELECT
    run, sync_id,
    CASE WHEN COUNT(*) = COUNT(_bytes) THEN SUM(_bytes) END AS lost_bytes
  FROM _place
  GROUP BY run, sync_id
);
