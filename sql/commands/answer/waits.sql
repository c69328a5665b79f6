-- Whether the recording has no event of some wait, which is inferred.
SELECT COUNT(*) AS inferred FROM syncline_wait WHERE confidence = 'inferred';
