"""A progress bar on stderr, shown if stderr is a terminal and the work takes long."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from syncline.reading import Progress
from syncline.render import human

# Work that is shorter shows no bar.
_SHOW_AFTER_S = 0.5
# What a command does when the input is read.
_AFTERWARDS = "computing"


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
        rich_progress.TextColumn("{task.fields[size]}"),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
        transient=True,
    )
    # Without a total the bar moves from side to side, as it must while SQL runs: nobody knows how far that is.
    task = shown.add_task(what, total=None, size="", left="")
    timer = threading.Timer(_SHOW_AFTER_S, shown.start)
    timer.daemon = True
    timer.start()
    begun = time.monotonic()

    def update(read: int, total: int | None, events: int) -> None:
        if total and read >= total:
            shown.update(task, description=_AFTERWARDS, size=f"{events:,} events", left="")
            # `update` takes None for no change.
            shown.tasks[0].total = None
            return
        passed = time.monotonic() - begun
        left = f"{passed * (total - read) / read:.0f} s left" if total and read else ""
        shown.update(
            task,
            completed=read,
            total=total,
            size=f"{human.text(read, 'bytes')}, {events:,} events",
            left=left,
        )

    try:
        yield update
    finally:
        timer.cancel()
        timer.join()
        shown.stop()
