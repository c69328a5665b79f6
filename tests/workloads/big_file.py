#!/usr/bin/env python3
"""One big sequential write, then one sync that writes back all of it."""

import os

from workload import Run, main, pattern


def body(run: Run) -> None:
    block = pattern(run.number("block"))
    fd = run.open(run.dir / "big")
    with run.timed():
        for at in range(0, run.number("mb") << 20, len(block)):
            run.write(fd, block, at)
        run.sync(fd, run.text("sync"))
    os.close(fd)


main(body, __doc__, mb=16, block=1 << 20, sync=("fsync", "fdatasync"))
