"""Flame graphs of sync requests by stack, file or thread: one module for each format, all with `render(picture) -> bytes`."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from .picture import Picture
from .stacks import BY, WEIGHTS, Stack, Stacks, Weight, read

__all__ = [
    "BY",
    "FORMATS",
    "WEIGHTS",
    "Picture",
    "Stack",
    "Stacks",
    "Weight",
    "exporter",
    "format_of",
    "read",
]

# Name on the command line and of the module in this package -> endings of file names.
FORMATS = {
    "svg": (".svg",),
    "folded": (".folded",),
    "speedscope": (".speedscope.json",),
    "perf": (".perf",),
    "pprof": (".pb.gz",),
}


def format_of(output: str) -> str | None:
    """Returns the format of a file name by its ending."""
    return next((name for name, ends in FORMATS.items() if output.endswith(ends)), None)


def exporter(name: str) -> Callable[[Picture], bytes]:
    """Returns the `render` of a format."""
    if name not in FORMATS:
        raise ValueError(f"no flame graph format '{name}'")
    return importlib.import_module(f".{name}", __package__).render
