#!/usr/bin/env python3
"""Writes some files, then syncs the whole file system (syncfs) or all file systems (sync)."""

import os

from workload import Run, main, pattern


def body(run: Run) -> None:
    with run.timed():
        for turn in range(run.number("syncs")):
            for n in range(run.number("files")):
                fd = run.open(run.dir / f"file-{n}")
                run.write(fd, pattern(run.number("size"), seed=turn))
                os.close(fd)
            if run.text("call") == "sync":
                run.sync_all()
            else:
                fd = os.open(run.dir, os.O_RDONLY)
                run.syncfs(fd)
                os.close(fd)


main(body, __doc__, syncs=5, files=10, size=4096, call=("syncfs", "sync"))
