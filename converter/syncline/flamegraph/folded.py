"""Folded stacks: `comm;outermost;...;innermost N`. With a base, `... BASE N`, the format of difffolded.pl and inferno-diff-folded."""

from __future__ import annotations

from syncline import _core

from .picture import Picture

__all__ = ["render"]


def render(picture: Picture) -> bytes:
    """Renders one line for each stack, sorted."""
    rows = [(list(frames), weight, base) for frames, weight, base in picture.rows()]
    return _core.folded(rows)
