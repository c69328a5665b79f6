-- Inside: what the time of a sync went to, and what happened for it meanwhile:
-- its bios, the commits that it waits for with their steps, and the bios of
-- these commits. In the order of time.
WITH
  request AS MATERIALIZED (
    SELECT sync_id
    FROM syncline_sync
    WHERE
      call_sync_id
      = (SELECT call_sync_id FROM syncline_sync WHERE sync_id = $sync_id)
  ),
  awaited AS MATERIALIZED (
    SELECT DISTINCT journal.commit_id, journal.ts_ns
    FROM syncline_wait AS wait
    JOIN request USING (sync_id)
    JOIN syncline_journal AS journal ON journal.commit_id = wait.commit_id
  ),
  commit_slice AS MATERIALIZED (
    SELECT slice.id, slice.ts, slice.dur, slice.name
    FROM awaited
    JOIN slice ON slice.ts = awaited.ts_ns
    WHERE
      slice.category = 'syncline.commit'
      AND extract_arg(slice.arg_set_id, 'debug.commit_id') = awaited.commit_id
  ),
  bio AS MATERIALIZED (
    SELECT 'bio' AS lane, own.*
    FROM request
    JOIN syncline_bio AS own ON own.sync_id = request.sync_id
    UNION ALL
    SELECT 'commit bio' AS lane, other.*
    FROM awaited
    JOIN syncline_bio AS other ON other.commit_id = awaited.commit_id
    WHERE other.sync_id IS NULL
  ),
  part AS (
    SELECT
      'phase' AS lane,
      phase AS name,
      ts_ns, dur_ns,
      NULL AS queue_ns,
      NULL AS bytes,
      NULL AS rwbs,
      NULL AS slice_id,
      cpu_comm, cpu_tid
    FROM request
    JOIN syncline_phase USING (sync_id)
    WHERE ts_ns IS NOT NULL AND dur_ns > 0
    UNION ALL
    SELECT
      bio.lane,
      bio.path AS name,
      bio.ts_ns, bio.dur_ns, bio.queue_ns, bio.bytes, bio.rwbs, found.slice_id,
      NULL AS cpu_comm,
      NULL AS cpu_tid
    FROM bio
    LEFT JOIN _syncline_plugin_slice AS found
      ON found.is_bio
      AND found.sync_id IS bio.sync_id
      AND found.bio_id = bio.bio_id
    WHERE bio.dur_ns IS NOT NULL
    UNION ALL
    SELECT
      'commit' AS lane,
      name,
      ts AS ts_ns,
      dur AS dur_ns,
      NULL AS queue_ns,
      NULL AS bytes,
      NULL AS rwbs,
      id AS slice_id,
      NULL AS cpu_comm,
      NULL AS cpu_tid
    FROM commit_slice
    UNION ALL
    SELECT
      'step' AS lane,
      step.name,
      step.ts AS ts_ns,
      step.dur AS dur_ns,
      NULL AS queue_ns,
      NULL AS bytes,
      NULL AS rwbs,
      step.id AS slice_id,
      NULL AS cpu_comm,
      NULL AS cpu_tid
    FROM commit_slice
    JOIN slice AS step ON step.parent_id = commit_slice.id
  )
SELECT * FROM part ORDER BY ts_ns, dur_ns DESC;
