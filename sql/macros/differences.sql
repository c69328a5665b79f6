-- How often members of each group have a property, and how often the members
-- of all other groups have it.
--
-- Properties that fewer than 3 members of a run have are left out, because they
-- describe a member rather than a group. One that no member of a group has is
-- there for the group too.
--
-- Result: a row for each group and property, with
--   run, number, name  Of the group and the property.
--   here, elsewhere    Shares of the members of which it is known, in the group
--                      and elsewhere. elsewhere is null if there are none.
--
-- Example: SELECT name, here FROM differences!(property) WHERE number = 1
CREATE PERFETTO MACRO differences(
  -- Table with a row for each member and property of which it is known whether
  -- the member has it: `run`; `number` of the group; `kind` of the property,
  -- such as 'file'; and `name`, the property, such as the path of the file.
  -- `name` is null if the member has none of this kind.
  properties TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  WITH
    _counted AS (
      SELECT run, number, kind, name, COUNT(*) AS members
      FROM $properties
      GROUP BY run, number, kind, name
    ),
    -- Of how many members of each group, and of all, it is known.
    _known AS (
      SELECT
        run, number, kind,
        SUM(members) AS _members,
        SUM(SUM(members)) OVER (PARTITION BY run, kind) AS _all
      FROM _counted
      GROUP BY run, number, kind
    ),
    _total AS (
      SELECT run, kind, name, SUM(members) AS _with
      FROM _counted
      WHERE name IS NOT NULL
      GROUP BY run, kind, name
      HAVING SUM(members) >= 3
    )
  SELECT
    run, number, name,
    share!(COALESCE(_here.members, 0), _members) AS here,
    share!(_with - COALESCE(_here.members, 0), _all - _members) AS elsewhere
  FROM _known
  JOIN _total USING (run, kind)
  LEFT JOIN _counted AS _here USING (run, number, kind, name)
);
