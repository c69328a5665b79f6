-- Worst: the three files, or folders, and names of threads whose syncs waited
-- longest.
--
-- A row covers the syncs of one file by the threads with one name. If no three
-- files have a quarter of the time, a row covers the files of one folder, and
-- `path` ends with `/`. Files have the names of the report `files`. `phase` is
-- the phase with the most time of its syncs, null if none is known.
WITH
  sync AS (
    SELECT
      run, call_sync_id,
      COALESCE(path, 'inode ' || ino || ' on ' || dev, what) AS path,
      -- The path without what follows its last slash.
      RTRIM(path, REPLACE(path, '/', '')) AS folder,
      op, comm, tid, dur_ns
    FROM syncline_sync_call
    WHERE dur_ns IS NOT NULL
  ),
  by_file AS (
    SELECT
      SUM(dur_ns) AS time_ns,
      ROW_NUMBER() OVER (ORDER BY SUM(dur_ns) DESC) AS place
    FROM sync
    GROUP BY run, path, comm
  ),
  top AS (
    SELECT
      SUM(CASE WHEN place <= 3 THEN time_ns ELSE 0 END) AS top_ns,
      SUM(time_ns) AS all_ns
    FROM by_file
  ),
  -- `shared` is the folder that a row covers.
  grouped AS (
    SELECT sync.*, CASE WHEN top_ns * 4 < all_ns THEN folder END AS shared
    FROM sync
    CROSS JOIN top
  ),
  item AS (
    SELECT
      *,
      COALESCE(shared, path) AS place_path,
      DENSE_RANK() OVER (ORDER BY run, COALESCE(shared, path), comm) AS item
    FROM grouped
  ),
  worst AS (
    SELECT
      item, run,
      place_path AS path,
      comm,
      COUNT(DISTINCT path) AS files,
      COUNT(DISTINCT tid) AS threads,
      MIN(tid) AS tid,
      COUNT(*) AS syncs,
      SUM(dur_ns) AS time_ns,
      MAX(dur_ns) AS max_ns,
      ROW_NUMBER() OVER (ORDER BY SUM(dur_ns) DESC, item) AS place
    FROM item
    GROUP BY item, run, place_path, comm
  ),
  part AS (
    SELECT
      item.item AS item,
      phase.phase AS phase,
      SUM(phase.dur_ns) AS phase_ns,
      ROW_NUMBER() OVER (
        PARTITION BY item.item
        ORDER BY SUM(phase.dur_ns) DESC, phase.phase
      ) AS place
    FROM item
    JOIN worst ON worst.item = item.item AND worst.place <= 3
    JOIN syncline_sync AS request
      ON request.run = item.run
      AND request.call_sync_id = item.call_sync_id
    JOIN syncline_phase AS phase
      ON phase.run = request.run
      AND phase.sync_id = request.sync_id
    GROUP BY item.item, phase.phase
  )
SELECT
  path, files, comm, threads, tid, syncs,
  CAST(time_ns AS BIGINT) AS time_ns,
  max_ns,
  part.phase AS phase,
  CAST(part.phase_ns AS BIGINT) AS phase_ns,
  run
FROM worst
LEFT JOIN part ON part.item = worst.item AND part.place = 1
WHERE worst.place <= 3
ORDER BY worst.place;
