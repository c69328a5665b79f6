-- Block I/O: the bios that a file system made, from submit to completion.

-- Bios, one row each, in the order of time.
CREATE OR REPLACE PERFETTO TABLE syncline_bio (
  -- 1, 2, 3... in the order of the bios' first events.
  bio_id LONG,
  -- The request that it was made for. Null for background writeback.
  sync_id LONG,
  -- The tracer's id, as on the request. 0 is background writeback. Above 2^63-1
  -- it is shown as its two's complement.
  id LONG,
  -- bio_submit; the time of the first folio when the submit is missing.
  ts_ns TIMESTAMP,
  -- To bio_complete. Null when the submit or the completion is missing.
  dur_ns DURATION,
  -- Its address, `0x...`. The kernel uses addresses again all the time.
  bio STRING,
  -- Device as `major,minor`. Null where unknown.
  dev STRING,
  -- First sector. Null where unknown.
  sector LONG,
  -- Sum of its folios, as added.
  bytes LONG,
  -- Number of its folios.
  folios LONG,
  -- Separate runs of file offsets, after joining neighbours.
  ranges LONG,
  -- Lowest byte offset of its folios. Null with no folio.
  first_offset LONG,
  -- The byte offset just past its highest folio. Null with no folio.
  last_offset LONG,
  -- Thread that submitted it, or added the first folio when the submit is
  -- missing.
  tid LONG,
  -- Process that submitted it. Null where the source has only threads.
  pid LONG,
  -- Name of the thread that submitted it.
  comm STRING,
  -- `sync` or `background`.
  origin STRING,
  -- `exact`, `inferred` or `unknown`: of the edge to its request. Null for
  -- background writeback.
  confidence STRING,
  -- Null, `start` (no submit) or `end` (no completion).
  incomplete STRING,
  -- Always '' here: a trace holds one run. Joins over several runs need it.
  run STRING
) AS
SELECT
  extract_arg(arg_set_id, 'debug.bio_id') AS bio_id,
  extract_arg(arg_set_id, 'debug.sync_id') AS sync_id,
  extract_arg(arg_set_id, 'debug.id') AS id,
  ts AS ts_ns,
  -- The slice of a bio with an unknown end has length 0.
  iif(extract_arg(arg_set_id, 'debug.incomplete') IS NULL, dur, NULL) AS dur_ns,
  -- A pointer, which SQL has as a number.
  iif(
    extract_arg(arg_set_id, 'debug.bio') IS NULL,
    NULL,
    printf('0x%x', extract_arg(arg_set_id, 'debug.bio'))
  ) AS bio,
  extract_arg(arg_set_id, 'debug.dev') AS dev,
  extract_arg(arg_set_id, 'debug.sector') AS sector,
  extract_arg(arg_set_id, 'debug.bytes') AS bytes,
  extract_arg(arg_set_id, 'debug.folios') AS folios,
  extract_arg(arg_set_id, 'debug.ranges') AS ranges,
  extract_arg(arg_set_id, 'debug.first_offset') AS first_offset,
  extract_arg(arg_set_id, 'debug.last_offset') AS last_offset,
  extract_arg(arg_set_id, 'debug.tid') AS tid,
  extract_arg(arg_set_id, 'debug.pid') AS pid,
  extract_arg(arg_set_id, 'debug.comm') AS comm,
  CASE
    WHEN extract_arg(arg_set_id, 'debug.sync_id') IS NULL THEN 'background'
    ELSE 'sync'
  END AS origin,
  -- Most edges are exact, so the trace says only which are not.
  iif(
    extract_arg(arg_set_id, 'debug.sync_id') IS NULL,
    NULL,
    coalesce(extract_arg(arg_set_id, 'debug.confidence'), 'exact')
  ) AS confidence,
  extract_arg(arg_set_id, 'debug.incomplete') AS incomplete,
  '' AS run
FROM slice
WHERE
  category = 'syncline.bio'
ORDER BY
  ts_ns,
  bio_id;

-- A bio is looked up by its request more often than by time.
CREATE OR REPLACE PERFETTO INDEX _syncline_bio_sync_id
ON syncline_bio(sync_id);
