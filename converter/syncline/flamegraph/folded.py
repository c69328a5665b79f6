"""Folded stacks: `comm;outermost;...;innermost N`. With a base, `... BASE N`, the format of difffolded.pl and inferno-diff-folded."""

from __future__ import annotations

from .picture import Picture

__all__ = ["render"]


def render(picture: Picture) -> bytes:
    """Renders one line for each stack, sorted."""
    lines = []
    for frames, weight, base in picture.rows():
        before = "" if base is None else f"{round(base)} "
        lines.append(f"{';'.join(frames)} {before}{weight}\n")
    return "".join(sorted(lines)).encode()
