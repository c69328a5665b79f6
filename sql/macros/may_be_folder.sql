-- Syncs that may be of a folder, because another path of their run is in one of
-- that name.
--
-- Only the last name of the folder counts: a path may lack its beginning, as
-- `.../d/a` does.
--
-- Result: a row for each such sync, with `run` and `sync_id`.
--
-- Example: SELECT COUNT(*) FROM may_be_folder!()
CREATE PERFETTO MACRO may_be_folder()
RETURNS TableOrSubquery
AS
(
  WITH
    _folder AS (
      SELECT DISTINCT run, last_name!(_path) AS _name
      FROM (
        SELECT run, folder_of!(path) AS _path
        FROM syncline_sync
        WHERE path IS NOT NULL
      ) AS _file
    )
  SELECT sync.run AS run, sync.sync_id AS sync_id
  FROM syncline_sync AS sync
  JOIN _folder
    ON _folder.run = sync.run
    AND _folder._name = last_name!(sync.path)
);
