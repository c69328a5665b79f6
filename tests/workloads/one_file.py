#!/usr/bin/env python3
"""Threads write separate parts of one file, and each syncs it, which writes back the pages of the others too."""

import os

from workload import Run, main, pattern


def body(run: Run) -> None:
    threads, syncs, size = run.number("threads"), run.number("syncs"), run.number("size")
    data = pattern(size)
    fd = (
        run.make_file(run.dir / "shared", threads * size)
        if run.number("exists")
        else run.open(run.dir / "shared")
    )

    def write(thread: int) -> None:
        for _ in range(syncs):
            run.write(fd, data, thread * size)
            run.sync(fd, run.text("sync"))

    with run.timed():
        run.in_threads(threads, write)
    os.close(fd)


main(body, __doc__, threads=4, syncs=20, size=4096, exists=0, sync=("fsync", "fdatasync"))
