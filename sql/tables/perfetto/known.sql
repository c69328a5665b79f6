-- What a trace says once for all rows. The other modules derive from it, and
-- from slices and tracks, the columns that a row leaves out.
--
-- A row with the argument `full` holds all its values, and so does each row of
-- a trace that leaves nothing out: nothing is derived for them. The rules are
-- those of converter/core/src/rows/derived.rs.

-- Values that most rows have. One row; `derives` is null if the trace leaves
-- nothing out.
CREATE OR REPLACE PERFETTO TABLE _syncline_known AS
WITH
  common AS (
    SELECT
      name,
      extract_arg(arg_set_id, 'debug.dev') AS dev,
      extract_arg(arg_set_id, 'debug.fs') AS fs,
      extract_arg(arg_set_id, 'debug.ret') AS ret,
      extract_arg(arg_set_id, 'debug.journal_ns') AS journal_ns,
      extract_arg(arg_set_id, 'debug.flush_ns') AS flush_ns,
      extract_arg(arg_set_id, 'debug.error') AS error,
      extract_arg(arg_set_id, 'debug.id') AS id
    FROM slice
    WHERE category = 'syncline.common'
  )
SELECT
  MAX(iif(name = 'rows', 1, NULL)) AS derives,
  MAX(dev) AS dev,
  MAX(fs) AS fs,
  MAX(iif(name = 'request', ret, NULL)) AS ret,
  MAX(journal_ns) AS journal_ns,
  MAX(flush_ns) AS flush_ns,
  MAX(iif(name = 'call', ret, NULL)) AS call_ret,
  MAX(error) AS bio_error,
  MAX(id) AS id_offset
FROM common;

-- Threads by number.
CREATE OR REPLACE PERFETTO TABLE _syncline_thread AS
SELECT
  extract_arg(arg_set_id, 'debug.tid') AS tid,
  extract_arg(arg_set_id, 'debug.pid') AS pid,
  extract_arg(arg_set_id, 'debug.comm') AS comm
FROM slice
WHERE category = 'syncline.thread'
ORDER BY tid;

-- Processes by number.
CREATE OR REPLACE PERFETTO TABLE _syncline_process AS
SELECT
  extract_arg(arg_set_id, 'debug.pid') AS pid,
  extract_arg(arg_set_id, 'debug.process') AS process,
  extract_arg(arg_set_id, 'debug.cgroup') AS cgroup
FROM slice
WHERE category = 'syncline.process'
ORDER BY pid;

-- The thread or the device of each track that has one.
CREATE OR REPLACE PERFETTO TABLE _syncline_track AS
WITH
  announced AS MATERIALIZED (
    SELECT name, MAX(extract_arg(arg_set_id, 'debug.tid')) AS tid
    FROM slice
    WHERE category = 'syncline.track'
    GROUP BY name
  )
SELECT thread_track.id AS track_id, thread.tid AS tid, NULL AS dev
FROM thread_track
JOIN thread USING (utid)
UNION ALL
SELECT
  track.id AS track_id,
  -- An instant with the name of the track says the number of a thread without a
  -- known process.
  iif(parent.name = 'Threads', announced.tid, NULL) AS tid,
  -- What is between the last parentheses: rtrim() removes what follows `(`.
  iif(
    parent.name GLOB 'Block I/O *',
    NULLIF(
      SUBSTR(
        RTRIM(parent.name, ')'),
        LENGTH(RTRIM(parent.name, REPLACE(parent.name, '(', ''))) + 1
      ),
      'device unknown'
    ),
    NULL
  ) AS dev
FROM track
JOIN track AS parent ON parent.id = track.parent_id
LEFT JOIN announced ON announced.name = track.name
WHERE parent.name = 'Threads' OR parent.name GLOB 'Block I/O *'
ORDER BY track_id;
