"""perf-script text: one sample for each stack with its whole weight (`convert -o X.perf` writes one for each request)."""

from __future__ import annotations

from syncline import _core

from .picture import Picture

__all__ = ["render"]


def render(picture: Picture) -> bytes:
    """Renders samples for the stack collapsers of FlameGraph and inferno."""
    samples = []
    for stack in picture.new.stacks.stacks:
        weight = stack.sums.get(picture.weight, 0)
        # stackcollapse-perf.pl reads 0 as 1.
        if weight > 0:
            comm, *frames = stack.frames
            samples.append((comm, stack.tid, stack.first_ts_ns, weight, frames))
    return _core.perf_script(samples, picture.weight)
