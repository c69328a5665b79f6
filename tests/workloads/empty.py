#!/usr/bin/env python3
"""Syncs with nothing dirty: a clean file, a new empty file, a directory."""

import os

from workload import Run, main


def body(run: Run) -> None:
    fd = run.make_file(run.dir / "clean", 4096)
    with run.timed():
        for _ in range(run.number("syncs")):
            run.sync(fd, run.text("sync"))
        empty = run.open(run.dir / "new")
        run.sync(empty, run.text("sync"))
        os.close(empty)
        run.sync_dir(run.dir)
    os.close(fd)


main(body, __doc__, syncs=50, sync=("fsync", "fdatasync"))
