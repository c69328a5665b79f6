#!/usr/bin/env python3
"""Syncs files that have been unlinked. Their former names contain a space."""

import os

from workload import Run, main, pattern


def body(run: Run) -> None:
    with run.timed():
        for n in range(run.number("files")):
            path = run.dir / f"deleted file {n}"
            fd = run.open(path)
            path.unlink()
            run.write(fd, pattern(run.number("size")))
            run.sync(fd)
            os.close(fd)


main(body, __doc__, files=5, size=200)
