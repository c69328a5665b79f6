-- Failed: whether a bio failed, after which a sync may return 0 although data
-- of its file are lost; and how long bios took, in all, whose issue is not
-- known.
SELECT
  SUM(CASE WHEN error < 0 THEN 1 ELSE 0 END) AS bios,
  CAST(SUM(
    CASE WHEN device_ns IS NULL AND direction <> 'flush' THEN dur_ns ELSE 0 END
  ) AS BIGINT) AS unissued_ns
FROM syncline_bio;
