"""Syncline: fsync-driven writeback as a Perfetto trace, and answers about it."""
