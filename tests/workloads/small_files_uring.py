#!/usr/bin/env python3
"""Writes and syncs many small files by io_uring: submits all operations at once, then waits for them.

With link=1 each sync waits for its write. With link=0 the kernel may run the sync first, which then syncs nothing.
"""

import os

from uring import Ring
from workload import Run, main, pattern


def body(run: Run) -> None:
    files, link = run.number("files"), bool(run.number("link"))
    datasync = run.text("sync") == "fdatasync"
    data = pattern(run.number("size"))
    fds = [run.open(run.dir / f"small-{n:04}") for n in range(files)]
    # A linked pair must be in one submission, so the size is even.
    ring = Ring(max(2, min(files * 2, run.number("depth"))))
    with run.timed():
        outstanding = 0
        for fd in fds:
            if outstanding + 2 > ring.entries:
                check(ring.complete(outstanding), len(data))
                outstanding = 0
            ring.write(fd, data, 0, link=link)
            ring.fsync(fd, datasync=datasync)
            run.wrote(len(data))
            run.count(f"io_uring_{run.text('sync')}")
            outstanding += 2
        ring.submit()
        check(ring.complete(outstanding), len(data))
    ring.close()
    for fd in fds:
        os.close(fd)


def check(results: list[int], size: int) -> None:
    for result in results:
        if result not in (0, size):
            raise OSError(-result, os.strerror(-result))


main(body, __doc__, files=100, size=200, link=1, depth=256, sync=("fsync", "fdatasync"))
