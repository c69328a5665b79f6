"""perf-script text: a sample a stack, with its whole weight (`convert -o X.perf` writes one a request)."""

from __future__ import annotations

from syncline import _core

from .picture import Picture

__all__ = ["render"]


def render(picture: Picture) -> bytes:
    """As the collapsers of FlameGraph and inferno read it."""
    samples = []
    for stack in picture.new.stacks.stacks:
        weight = stack.sums.get(picture.weight, 0)
        # It adds nothing, and stackcollapse-perf.pl takes 0 for 1.
        if weight > 0:
            comm, *frames = stack.frames
            samples.append((comm, stack.tid, stack.first_ts_ns, weight, frames))
    return _core.perf_script(samples, picture.weight)
