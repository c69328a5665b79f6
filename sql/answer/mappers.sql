-- Mappers: devices of a device mapper on which syncs are. It may hold bios
-- back: to encrypt them, or because dm-delay was asked to.
SELECT DISTINCT name.value AS device
FROM syncline_sync AS sync
JOIN syncline_meta AS name
  ON name.run = sync.run
  AND name.key = 'device_name.' || sync.dev
WHERE name.value LIKE 'dm-%'
ORDER BY name.value;
