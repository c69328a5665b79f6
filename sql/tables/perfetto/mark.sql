-- Marks of the application: page loads, phases of a benchmark.

-- Marks, one row each, in the order of time.
CREATE OR REPLACE PERFETTO TABLE syncline_mark (
  -- Key of the mark: 1, 2, 3... in the order of the marks.
  mark_id LONG,
  -- Start of the mark.
  ts_ns TIMESTAMP,
  -- Duration as given. Without one, to the next mark, or to the end of the log
  -- after the last mark.
  dur_ns DURATION,
  -- Name as given.
  name STRING,
  -- Always '' here, because a trace holds one run. Joins over several runs need
  -- it.
  run STRING
) AS
SELECT
  extract_arg(arg_set_id, 'debug.mark_id') AS mark_id,
  ts AS ts_ns,
  dur AS dur_ns,
  name,
  '' AS run
FROM slice
WHERE category = 'syncline.mark'
ORDER BY ts_ns, mark_id;
