#!/usr/bin/env python3
"""Writes and syncs many small files one by one, in one or more threads."""

import os
import time

from workload import Run, main, pattern


def body(run: Run) -> None:
    files, threads = run.number("files"), run.number("threads")
    data = pattern(run.number("size"))
    fds = [run.open(run.dir / f"small-{n:04}") for n in range(files)]

    def write(thread: int) -> None:
        for fd in fds[thread::threads]:
            run.write(fd, data)
            run.sync(fd, run.text("sync"))
            time.sleep(run.number("gap_ms") / 1000)

    with run.timed():
        run.in_threads(threads, write)
    for fd in fds:
        os.close(fd)


main(body, __doc__, files=100, threads=1, size=200, gap_ms=0, sync=("fsync", "fdatasync", "none"))
