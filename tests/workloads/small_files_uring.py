#!/usr/bin/env python3
"""Many small files, written and synced through io_uring: all are asked for at once, then waited for.

link=1 makes each sync wait for its write; with link=0 the kernel may run it first, and it may sync nothing.
"""

import os

from uring import Ring
from workload import Run, main, pattern


def body(run: Run) -> None:
    files, link = run.number("files"), bool(run.number("link"))
    datasync = run.text("sync") == "fdatasync"
    data = pattern(run.number("size"))
    fds = [run.open(run.dir / f"small-{n:04}") for n in range(files)]
    # A pair that is linked must lie in one submission, so the size is even.
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
