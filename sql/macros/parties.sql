-- Who uses devices, journals and CPUs: the owners of bios and syncs, and of
-- CPUs that syncs waited for, numbered.
--
-- Result: a row for each owner of a run, with
--   run, owner  As in the tables.
--   party       Its number, from 1 on. No other owner of any run has it.
--   process     Name of the process.
--   cgroup      Its control group. Null if it is not known.
--   kind        What is known of it: syncs, computes, kernel, reads, discards,
--               metadata, or else writes. The report neighbours explains them.
--   bios        Number of its bios.
--   changes     Number of these that are blocks of journal_blocks!.
--   bytes       Their size. Null if it has none.
--   syncs       Number of its syncs that are counted, each call once.
--   ns          The sum of the lengths of these.
--
-- Example: SELECT kind, process, bytes
--   FROM parties!(owned_bios!(), owned_sync, cpu_users!())
CREATE PERFETTO MACRO parties(
  -- Table of bios with the columns of owned_bios!.
  bios TableOrSubquery,
  -- Table of syncs with `run`, `owner`, `process`, `cgroup`, `call_sync_id`,
  -- `dur_ns`, and `is_counted`: 1 if `syncs` and `ns` count it, else 0.
  syncs TableOrSubquery,
  -- Table with the columns of cpu_users!.
  users TableOrSubquery
)
RETURNS TableOrSubquery
AS
(
  SELECT
    run, owner,
    ROW_NUMBER() OVER (ORDER BY run, owner) AS party,
    MIN(process) AS process,
    MIN(cgroup) AS cgroup,
    CASE
      WHEN COUNT(is_counted) > 0 THEN 'syncs'
      WHEN COUNT(part) = 0 THEN 'computes'
      WHEN MIN(part = 'kernel') THEN 'kernel'
      WHEN MIN(part IS NULL OR COALESCE(direction, '') = 'read') THEN 'reads'
      WHEN MIN(direction IN ('discard', 'zeroes')) THEN 'discards'
      WHEN MIN(part <> 'data' AND is_metadata = 1) THEN 'metadata'
      ELSE 'writes'
    END AS kind,
    COUNT(part) AS bios,
    sum_where!(1, part = 'change') AS changes,
    CAST(SUM(bytes) AS BIGINT) AS bytes,
    COUNT(DISTINCT CASE WHEN is_counted = 1 THEN call_sync_id END) AS syncs,
    CAST(COALESCE(SUM(is_counted * dur_ns), 0) AS BIGINT) AS ns
  FROM (
    SELECT
      run, owner, process, cgroup, part, direction, is_metadata, bytes,
      NULL AS is_counted,
      NULL AS dur_ns,
      NULL AS call_sync_id
    FROM $bios
    UNION ALL
    SELECT
      run, owner, process, cgroup, NULL, NULL, NULL, NULL, is_counted, dur_ns,
      call_sync_id
    FROM $syncs
    UNION ALL
    SELECT run, owner, process, cgroup, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM $users
  ) AS _deed
  GROUP BY run, owner
);
