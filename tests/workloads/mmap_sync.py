#!/usr/bin/env python3
"""Changes pages of a mapped file and calls msync on each, or on the whole mapping."""

import mmap
import os

from workload import Run, main, pattern


def body(run: Run) -> None:
    pages, page = run.number("pages"), mmap.PAGESIZE
    fd = run.make_file(run.dir / "mapped", pages * page)
    area = mmap.mmap(fd, pages * page)
    data = pattern(run.number("size"), seed=1)
    with run.timed():
        for n in range(run.number("syncs")):
            at = n * run.number("stride") % pages * page
            area[at : at + len(data)] = data
            run.wrote(len(data))
            if run.text("range") == "page":
                run.msync(area, at, page)
            else:
                run.msync(area)
    area.close()
    os.close(fd)


main(body, __doc__, pages=64, syncs=20, stride=7, size=200, range=("page", "all"))
