"""Opens any INPUT for SQL, for Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from syncline.errors import InputError
from syncline.input import Input
from syncline.kinds import resolve
from syncline.reading import Progress, Reading

__all__ = ["Input", "InputError", "Progress", "Reading", "opened", "resolve"]


@contextmanager
def opened(
    path: str, reading: Reading, engine: str = "auto", progress: Progress | None = None, **how: Any
) -> Iterator[Any]:
    """Resolves an INPUT, and yields an engine as `Kind.open` does. A command, which asks more of it, calls both."""
    with resolve(path, reading.source).open(reading, engine, progress, **how) as engine_:
        yield engine_
