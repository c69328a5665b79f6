-- Limits: each control group and what limits it, in words, with a tab between
-- them. Several runs may have several texts of a group.
SELECT DISTINCT value AS limits
FROM syncline_meta
WHERE key LIKE 'limits.%'
ORDER BY value;
