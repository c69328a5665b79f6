-- Write: the wait of a write that a slice is.
SELECT extract_arg(arg_set_id, 'debug.wait_id') AS wait_id
FROM slice
WHERE id = $slice_id AND category = 'syncline.write_wait';
