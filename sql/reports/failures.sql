-- Failures: the syncs, sync calls and bios that ended with an error.
--
-- A sync that failed has not made its data durable, whatever it took. A sync is
-- a request, a call is a sync call without a request. A row is a kind, error,
-- sync call, file or device, and thread name. The row with the most failures
-- comes first, syncs before calls and bios.
--
-- Narrow: what error op path failed comm dev first_ts_ns
--
-- Columns:
--   what         text   sync, call or bio.
--   error        text   Name of the error, such as EIO. The number if it has no
--                       name here.
--   op           text   Sync call. Null for a bio, and without a call.
--   path         text   Path of the file. Null if unknown, and for a call or a
--                       bio.
--   dev          text   Device of the bio or of the file.
--   comm         text   Name of the thread.
--   failed       count  Number of failures.
--   first_ts_ns  time   Start of the first one.
--   last_ts_ns   time   Start of the last one.
--   run          text   Name of the run, if the input holds several.
WITH
  -- Errors of a sync, of a device, and of a call that a signal interrupted.
  name(number, error) AS (
    VALUES
      (-1, 'EPERM'),
      (-4, 'EINTR'),
      (-5, 'EIO'),
      (-6, 'ENXIO'),
      (-9, 'EBADF'),
      (-11, 'EAGAIN'),
      (-12, 'ENOMEM'),
      (-13, 'EACCES'),
      (-16, 'EBUSY'),
      (-19, 'ENODEV'),
      (-22, 'EINVAL'),
      (-27, 'EFBIG'),
      (-28, 'ENOSPC'),
      (-29, 'ESPIPE'),
      (-30, 'EROFS'),
      (-32, 'EPIPE'),
      (-38, 'ENOSYS'),
      (-52, 'EBADE'),
      (-61, 'ENODATA'),
      (-67, 'ENOLINK'),
      (-78, 'EREMCHG'),
      (-84, 'EILSEQ'),
      (-95, 'EOPNOTSUPP'),
      (-107, 'ENOTCONN'),
      (-108, 'ESHUTDOWN'),
      (-110, 'ETIMEDOUT'),
      (-116, 'ESTALE'),
      (-117, 'EUCLEAN'),
      (-121, 'EREMOTEIO'),
      (-122, 'EDQUOT'),
      (-125, 'ECANCELED'),
      (-512, 'ERESTARTSYS'),
      (-513, 'ERESTARTNOINTR'),
      (-514, 'ERESTARTNOHAND'),
      (-516, 'ERESTART_RESTARTBLOCK')
  ),
  failure AS (
    SELECT 'sync' AS what, ret AS number, op, path, dev, comm, ts_ns, run
    FROM syncline_sync
    WHERE ret < 0
    UNION ALL
    SELECT 'call', ret, op, NULL, NULL, comm, ts_ns, run
    FROM syncline_call
    WHERE unmatched AND ret < 0
    UNION ALL
    SELECT 'bio', error, NULL, NULL, dev, comm, ts_ns, run
    FROM syncline_bio
    WHERE error < 0
  )
SELECT
  what,
  COALESCE(name.error, CAST(failure.number AS TEXT)) AS error,
  op, path, dev, comm,
  COUNT(*) AS failed,
  MIN(ts_ns) AS first_ts_ns,
  MAX(ts_ns) AS last_ts_ns,
  run
FROM failure
LEFT JOIN name ON name.number = failure.number
GROUP BY 1, 2, op, path, dev, comm, run
ORDER BY
  CASE what WHEN 'sync' THEN 1 WHEN 'call' THEN 2 ELSE 3 END,
  failed DESC,
  2,
  op NULLS LAST,
  path NULLS LAST,
  dev NULLS LAST,
  comm NULLS LAST,
  run;
