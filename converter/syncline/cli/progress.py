"""A progress bar on stderr, shown if stderr is a terminal and the work takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from syncline.reading import Progress

# Work that is shorter shows no bar.
_SHOW_AFTER_S = 0.5


@contextmanager
def bar(what: str) -> Iterator[Progress]:
    """Yields the progress callback of the core: (bytes read, bytes in total or None, events)."""
    if not sys.stderr.isatty():
        yield lambda read, total, events: None
        return
    from rich import progress as rich_progress
    from rich.console import Console

    shown = rich_progress.Progress(
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.DownloadColumn(binary_units=True),
        rich_progress.TextColumn("{task.fields[events]:,} events"),
        rich_progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = shown.add_task(what, total=None, events=0)
    begun = time.monotonic()
    started = False

    def update(read: int, total: int | None, events: int) -> None:
        nonlocal started
        if not started and time.monotonic() - begun > _SHOW_AFTER_S:
            started = True
            shown.start()
        shown.update(task, completed=read, total=total, events=events)

    try:
        yield update
    finally:
        if started:
            shown.stop()
