-- CPU: who had the CPU while threads that sync waited for it, as `NS NAME`, the
-- longest first, and for how long nobody had. Of all syncs, with a filter too.
SELECT key, value
FROM syncline_meta
WHERE key = 'cpu_idle_ns' OR key LIKE 'cpu_before.%'
ORDER BY key;
