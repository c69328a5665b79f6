-- Slices: the slices of requests and of their bios, and the track that shows
-- them. Built once a trace.
CREATE OR REPLACE PERFETTO TABLE _syncline_plugin_slice AS
SELECT
  id AS slice_id,
  track_id,
  category = 'syncline.bio' AS is_bio,
  extract_arg(arg_set_id, 'debug.sync_id') AS sync_id,
  extract_arg(arg_set_id, 'debug.bio_id') AS bio_id
FROM slice
WHERE category IN ('syncline.sync', 'syncline.bio')
ORDER BY slice_id;

CREATE OR REPLACE PERFETTO INDEX _syncline_plugin_slice_sync_id
ON _syncline_plugin_slice(sync_id);
