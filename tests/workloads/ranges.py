#!/usr/bin/env python3
"""Calls sync_file_range on parts of a file, and at the end fdatasync, which makes the data durable."""

import os

from workload import Run, main, pattern

WAIT_BEFORE, WRITE, WAIT_AFTER = 1, 2, 4


def body(run: Run) -> None:
    size = run.number("size")
    fd = run.open(run.dir / "ranges")
    with run.timed():
        for n in range(run.number("writes")):
            run.write(fd, pattern(size, seed=n), n * size)
            run.sync_file_range(
                fd, n * size, size, WRITE | (WAIT_BEFORE | WAIT_AFTER if run.number("wait") else 0)
            )
        run.sync(fd, "fdatasync")
    os.close(fd)


main(body, __doc__, writes=20, size=16384, wait=1)
