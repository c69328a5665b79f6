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
  -- Before schema version 6, an instant with the name of the track said the
  -- number of the thread.
  announced AS MATERIALIZED (
    SELECT name, MAX(extract_arg(arg_set_id, 'debug.tid')) AS tid
    FROM slice
    WHERE category = 'syncline.track'
    GROUP BY name
  ),
  -- The first track of a thread whose process is not known has a hidden child
  -- that says the number of the thread.
  first_track AS MATERIALIZED (
    SELECT
      track.track_group_id,
      CAST(SUBSTR(child.name, LENGTH('track of thread ') + 1) AS INT) AS tid
    FROM track AS child
    JOIN track ON track.id = child.parent_id
    WHERE
      child.name GLOB 'track of thread [0-9]*'
      AND child.type = 'global_counter_track_event'
  ),
  -- A row of bios is at the top level, or below the track of its device, which
  -- had another name before version 6.
  device_track AS (
    SELECT track.id, COALESCE(parent.name, track.name) AS name
    FROM track
    LEFT JOIN track AS parent ON parent.id = track.parent_id
  )
SELECT thread_track.id AS track_id, thread.tid AS tid, NULL AS dev
FROM thread_track
JOIN thread USING (utid)
UNION ALL
SELECT track.id AS track_id, first_track.tid AS tid, NULL AS dev
FROM first_track
JOIN track USING (track_group_id)
UNION ALL
SELECT track.id AS track_id, announced.tid AS tid, NULL AS dev
FROM track
JOIN track AS parent ON parent.id = track.parent_id
JOIN announced ON announced.name = track.name
WHERE parent.name = 'Threads'
UNION ALL
SELECT
  id AS track_id,
  NULL AS tid,
  -- What is between the last parentheses, without `device unknown`.
  regexp_extract(name, '\(([^() ]*)\)[^()]*$') AS dev
FROM device_track
WHERE name GLOB 'Disk *' OR name GLOB 'Block I/O *'
ORDER BY track_id;
