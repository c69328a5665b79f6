#!/usr/bin/env python3
"""Overwrites an existing file from its start, with or without alignment to pages, cached or not.

An unaligned write to a page that is not in the cache must read the page first.
"""

import os

from workload import Run, main, pattern


def body(run: Run) -> None:
    size = run.number("size") if run.text("align") == "aligned" else run.number("size") - 96
    writes = run.number("writes")
    data = pattern(size, seed=1)
    fd = run.make_file(run.dir / "data", writes * run.number("size"))
    if run.text("cache") == "cold":
        # All pages are clean after make_file, so they can be dropped without privileges.
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    with run.timed():
        for n in range(writes):
            run.write(fd, data, n * size)
            if (n + 1) % run.number("every") == 0:
                run.sync(fd, run.text("sync"))
    os.close(fd)


main(
    body,
    __doc__,
    writes=100,
    size=4096,
    every=1,
    align=("aligned", "unaligned"),
    cache=("warm", "cold"),
    sync=("fsync", "fdatasync"),
)
