"""Folded stacks: `comm;outermost;...;innermost N`; with a base `... BASE N`, as difffolded.pl and inferno-diff-folded write it."""

from __future__ import annotations

from .picture import Picture

__all__ = ["render"]


def render(picture: Picture) -> bytes:
    """A line a stack, sorted."""
    lines = []
    for frames, weight, base in picture.rows():
        before = "" if base is None else f"{round(base)} "
        lines.append(f"{';'.join(frames)} {before}{weight}\n")
    return "".join(sorted(lines)).encode()
