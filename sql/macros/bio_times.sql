-- Bios whose device and end are known, with where and when they were issued.
--
-- A bio that a partition or a device mapper redirected is issued at the device
-- below, and meets all others there.
--
-- Result: a row a bio, with all columns of syncline_bio, and
--   place        The device at which it was issued: `below`, or else `dev`.
--   submit_ns    When it was submitted: `ts_ns`.
--   issue_ns     When it was issued. The submit where that is not recorded.
--   complete_ns  When it was complete.
--
-- Example: SELECT place, AVG(complete_ns - issue_ns) FROM bio_times!()
--   GROUP BY place
CREATE PERFETTO MACRO bio_times()
RETURNS TableOrSubquery
AS
(
  SELECT
    *,
    COALESCE(below, dev) AS place,
    ts_ns AS submit_ns,
    ts_ns + COALESCE(queue_ns, 0) AS issue_ns,
    ts_ns + dur_ns AS complete_ns
  FROM syncline_bio
  WHERE dev IS NOT NULL AND dur_ns IS NOT NULL
);
