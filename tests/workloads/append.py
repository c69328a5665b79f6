#!/usr/bin/env python3
"""Appends records to one file, as a log does, and syncs after each `every` records."""

import os

from workload import Run, main, pattern


def body(run: Run) -> None:
    data = pattern(run.number("size"))
    fd = run.open(run.dir / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with run.timed():
        for n in range(1, run.number("records") + 1):
            run.write(fd, data)
            if n % run.number("every") == 0:
                run.sync(fd, run.text("sync"))
    os.close(fd)


main(body, __doc__, records=50, size=100, every=1, sync=("fsync", "fdatasync"))
