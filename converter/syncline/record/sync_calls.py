"""The sync calls that the recorders trace."""

SYNC_CALLS = ("fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range")
