-- Devices: the names of block devices by their numbers.
SELECT SUBSTR(key, LENGTH('device_name.') + 1) AS dev, value AS name
FROM syncline_meta
WHERE key GLOB 'device_name.*'
ORDER BY dev;
