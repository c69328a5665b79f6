-- Facts about the run: what was read, by which version, and its size.

-- Facts, one row each.
CREATE OR REPLACE PERFETTO TABLE syncline_meta (
  -- Name of the fact.
  key STRING,
  -- Value, as text.
  value STRING,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
WITH
  fact AS (
    SELECT
      SUBSTR(args.key, LENGTH('debug.') + 1) AS key,
      args.display_value AS value
    FROM slice
    JOIN args USING (arg_set_id)
    WHERE
      slice.category = 'syncline.meta'
      AND slice.name = 'syncline'
      AND args.key GLOB 'debug.*'
  )
SELECT
  -- trace_processor replaces the dot in the name of an argument by `_`.
  CASE
    WHEN key GLOB 'events_*' THEN 'events.'
    || SUBSTR(key, LENGTH('events_') + 1)
    WHEN key GLOB 'device_name_*' THEN 'device_name.'
    || SUBSTR(key, LENGTH('device_name_') + 1)
    WHEN key GLOB 'device_on_*' THEN 'device_on.'
    || SUBSTR(key, LENGTH('device_on_') + 1)
    WHEN key GLOB 'cpu_before_*' THEN 'cpu_before.'
    || SUBSTR(key, LENGTH('cpu_before_') + 1)
    WHEN key GLOB 'device_cache_*' THEN 'device_cache.'
    || SUBSTR(key, LENGTH('device_cache_') + 1)
    WHEN key GLOB 'limits_*' THEN 'limits.'
    || SUBSTR(key, LENGTH('limits_') + 1)
    ELSE key
  END AS key,
  value,
  '' AS run
FROM fact
ORDER BY key;
