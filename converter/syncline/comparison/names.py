"""Lists of names in messages."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["first_names"]

_SHOWN = 3


def first_names(names: Sequence[str]) -> str:
    """Returns the first names, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
