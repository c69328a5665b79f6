-- Whether the input has bios that read.
SELECT COUNT(*) AS reads FROM syncline_bio WHERE direction = 'read';
