"""The sync calls that the recorders trace."""

from syncline import _core

SYNC_CALLS: tuple[str, ...] = tuple(_core.SYNC_CALLS)
