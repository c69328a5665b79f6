-- Renames that did nothing, because both names were hard links to one file:
-- POSIX has rename() return 0 then, and both names stay.
--
-- A link shows that its names are of one file, until one of them is removed,
-- given to another file, or taken to a third name.
--
-- Result: a row for each, with `run`, `op_id`, and `path`, its old name.
--
-- Example: SELECT COUNT(*) FROM idle_renames!()
CREATE PERFETTO MACRO idle_renames()
RETURNS TableOrSubquery
AS
(
  WITH
    _change AS (
      SELECT
        run, op_id, op, path, to_path,
        ROW_NUMBER() OVER (ORDER BY run, ts_ns, op_id) AS _place
      FROM syncline_file_op
      WHERE op IN ('link', 'rename', 'unlink') AND COALESCE(ret, 0) >= 0
    ),
    -- The last link between the same two names.
    _linked AS (
      SELECT
        *,
        MAX(CASE op WHEN 'link' THEN _place END) OVER (
          PARTITION BY
            run,
            CASE WHEN path < to_path THEN path ELSE to_path END,
            CASE WHEN path < to_path THEN to_path ELSE path END
          ORDER BY _place
        ) AS _link_place
      FROM _change
      WHERE op IN ('link', 'rename') AND path <> to_path
    ),
    _asked AS (
      SELECT * FROM _linked WHERE op = 'rename' AND _link_place IS NOT NULL
    ),
    _use AS (
      SELECT run, path AS _name, _place, 0 AS _is_end FROM _asked
      UNION ALL
      SELECT run, to_path, _place, 0 FROM _asked
      UNION ALL
      SELECT run, path, _place, 1
      FROM _change
      WHERE op <> 'link' AND _place NOT IN (SELECT _place FROM _asked)
      UNION ALL
      SELECT run, to_path, _place, 1
      FROM _change
      WHERE op = 'rename' AND _place NOT IN (SELECT _place FROM _asked)
    ),
    _ended AS (
      SELECT
        _place, _is_end,
        MAX(CASE _is_end WHEN 1 THEN _place END) OVER (
          PARTITION BY run, _name
          ORDER BY _place
        ) AS _end_place
      FROM _use
      WHERE _name IS NOT NULL
    ),
    _latest AS (
      SELECT _place, MAX(_end_place) AS _end_place
      FROM _ended
      WHERE _is_end = 0
      GROUP BY _place
    )
  SELECT _asked.run AS run, _asked.op_id AS op_id, _asked.path AS path
  FROM _asked
  JOIN _latest ON _latest._place = _asked._place
  WHERE COALESCE(_latest._end_place, -1) < _asked._link_place
);
