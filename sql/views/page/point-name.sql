-- Files and threads of the :longest longest requests, as far as the page does
-- not list them: it names the first :files files and :threads threads.
WITH
  long AS (
    SELECT run, sync_id, file, thread
    FROM _page_request
    ORDER BY COALESCE(dur_ns, -1) DESC, run, sync_id
    LIMIT :longest
  ),
  named AS (
    SELECT
      run, sync_id,
      COALESCE(
        path,
        'inode ' || CAST(ino AS TEXT) || ' on ' || dev,
        '[' || what || ']',
        '[unknown file]'
      ) AS path,
      comm, tid
    FROM syncline_sync_call
  )
SELECT
  long.run, long.sync_id,
  CASE WHEN file >= :files THEN path END AS path,
  CASE WHEN thread >= :threads THEN comm END AS comm,
  CASE WHEN thread >= :threads THEN tid END AS tid
FROM long
JOIN named ON named.run = long.run AND named.sync_id = long.sync_id
WHERE file >= :files OR thread >= :threads
ORDER BY long.run, long.sync_id;
