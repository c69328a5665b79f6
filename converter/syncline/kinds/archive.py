"""A zip or tar of traces, which the Perfetto UI shows as one. No other command reads it: to them it is a log of no known format.

One of a run directory, or of one log, is `Packed`.
"""

from __future__ import annotations

from .kind import Kind
from .log import Log
from .place import Place

__all__ = ["Archive"]


class Archive(Log):
    """A zip or tar of traces."""

    is_trace = True
    is_archive = True

    @classmethod
    def recognized(cls, place: Place) -> Kind | None:
        is_archive = place.start.startswith(b"PK\x03\x04") or place.start[257:262] == b"ustar"
        return cls(place.path) if is_archive else None
