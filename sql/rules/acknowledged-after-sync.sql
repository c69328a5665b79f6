-- Nothing is acknowledged before the data that it is about are synced.
--
-- Demands: when a program writes to one of the files `log`, or to a socket, all
-- its earlier writes to `files` are synced: a sync that began after the write
-- had ended has returned without an error.
--
-- Why: who was told that the data are safe will not send them again. A crash
-- after the answer and before the sync loses them for good.
--
-- Kernel: a sync covers what was written before it began. One that is still
-- running, or that failed, covers nothing.
--
-- Instead: answer after fdatasync has returned 0; for many clients, collect
-- their records, sync once, and answer all.
--
-- Parameters: files, except, log, sockets
--
-- Columns:
--   verdict    text   ok, violated or cannot tell.
--   fault      text   What is wrong, by a name of syncline/check/wording.py.
--   path       text   The file.
--   seq        id     The step that the fault is of.
--   other_seq  id     The write that was not synced, or a like step.
--   folder     text   The folder, or the other file, that is to be synced.
--   run        text   Name of the run, if the input holds several.
WITH
  data AS (
    SELECT
      of!(
        op,
        (
          run, file_id, proc, seq, op, path, ts_ns, end_ns, ret, is_sync,
          is_dirty
        )
      )
    FROM _syncline_check_op AS op
    JOIN _syncline_check_match AS asked
      ON asked.run = op.run
      AND asked.path = op.path
      AND asked.role = 'files'
  ),
  answer AS (
    SELECT op.run AS run, op.seq AS seq, op.proc AS proc, op.ts_ns AS ts_ns
    FROM _syncline_check_op AS op
    LEFT JOIN _syncline_check_match AS asked
      ON asked.run = op.run
      AND asked.path = op.path
      AND asked.role = 'log'
    WHERE
      op.op IN ('write', 'send')
      AND (asked.path IS NOT NULL
      OR (:sockets
      AND (op.op = 'send'
      OR op.path GLOB 'TCP*'
      OR op.path GLOB 'UNIX*'
      OR op.path GLOB 'socket:*')))
  ),
  -- Until when each write was at risk: until the first sync that began after it
  -- had ended has returned.
  point AS (
    SELECT
      run, file_id, proc, seq, path, ts_ns,
      COALESCE(end_ns, CAST(4611686018427387904 AS BIGINT)) AS at_ns,
      0 AS place,
      CAST(NULL AS BIGINT) AS synced_ns
    FROM data
    WHERE is_dirty = 1
    UNION ALL
    SELECT run, file_id, proc, seq, path, ts_ns, ts_ns, 1, end_ns
    FROM data
    WHERE is_sync = 1 AND ret >= 0
    UNION ALL
    SELECT
      file.run, file.file_id, every.proc, every.seq, every.path, every.ts_ns,
      every.ts_ns, 1, every.end_ns
    FROM (SELECT DISTINCT run, file_id FROM data) AS file
    JOIN _syncline_check_op AS every
      ON every.run = file.run
      AND every.op = 'sync'
      AND every.ret >= 0
  ),
  risk AS (
    SELECT
      *,
      COALESCE(
        MIN(synced_ns) OVER (
          PARTITION BY run, file_id
          ORDER BY at_ns, place
          ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ),
        CAST(4611686018427387904 AS BIGINT)
      ) AS until_ns
    FROM point
  ),
  -- The latest such time of the writes before each answer.
  answered AS (
    SELECT run, proc, seq, at_ns, value_ns
    FROM latest_until!(
      (SELECT run, proc, seq, ts_ns AS at_ns FROM answer),
      (
        SELECT run, proc, ts_ns AS at_ns, until_ns AS value_ns
        FROM risk
        WHERE place = 0
      ),
      (seq),
      (run, proc)
    )
  ),
  early AS (
    SELECT answered.run AS run, answered.seq AS seq, MIN(risk.seq) AS other_seq
    FROM answered
    JOIN risk
      ON risk.run = answered.run
      AND risk.proc = answered.proc
      AND risk.until_ns = answered.value_ns
      AND risk.place = 0
      AND risk.ts_ns <= answered.at_ns
    WHERE answered.value_ns > answered.at_ns
    GROUP BY answered.run, answered.seq
  )
SELECT
  'violated' AS verdict,
  'acknowledged' AS fault,
  written.path AS path,
  early.seq AS seq,
  early.other_seq AS other_seq,
  CAST(NULL AS TEXT) AS folder,
  early.run AS run
FROM early
JOIN _syncline_check_op AS written ON written.seq = early.other_seq
UNION ALL
SELECT
  'ok', 'acknowledged', risk.path,
  MIN(risk.seq),
  CAST(NULL AS BIGINT),
  CAST(NULL AS TEXT),
  risk.run
FROM risk
JOIN (SELECT DISTINCT run, proc FROM answer) AS answer
  ON answer.run = risk.run
  AND answer.proc = risk.proc
WHERE risk.place = 0
GROUP BY risk.run, risk.path;
