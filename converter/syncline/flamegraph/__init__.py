"""Flame graphs: what syncs wait for, summed up by stack, file or thread; one exporter a file, all `render(picture) -> bytes`."""

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

# The name on the command line, which is the module here, and the endings that choose it.
FORMATS = {
    "svg": (".svg",),
    "folded": (".folded",),
    "speedscope": (".speedscope.json",),
    "perf": (".perf",),
    "pprof": (".pb.gz",),
}


def format_of(output: str) -> str | None:
    """The format that a name's ending chooses."""
    return next((name for name, ends in FORMATS.items() if output.endswith(ends)), None)


def exporter(name: str) -> Callable[[Picture], bytes]:
    """The `render` of a format."""
    if name not in FORMATS:
        raise ValueError(f"no format of flame graphs is called {name}")
    return importlib.import_module(f".{name}", __package__).render
