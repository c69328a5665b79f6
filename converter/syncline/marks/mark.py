"""A mark: a stretch of an application's time with a name."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Mark"]


class Mark(NamedTuple):
    """Times in ns. Without a duration, a mark lasts until the next one."""

    ts_ns: int
    name: str
    dur_ns: int | None
    # Number of its line in the file.
    line: int
