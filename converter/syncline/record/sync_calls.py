"""The sync calls that the recorders trace."""

# Those of the core, without writes, of which only some are a sync. A test compares.
SYNC_CALLS: tuple[str, ...] = ("fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range")
