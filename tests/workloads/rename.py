#!/usr/bin/env python3
"""Saves a file safely: writes a temporary file, syncs it, renames it over the old one, syncs the directory."""

import os

from workload import Run, main, pattern


def body(run: Run) -> None:
    with run.timed():
        for n in range(run.number("saves")):
            temporary = run.dir / "document.tmp"
            fd = run.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            run.write(fd, pattern(run.number("size"), seed=n))
            run.sync(fd)
            os.close(fd)
            temporary.rename(run.dir / "document")
            if run.number("dir"):
                run.sync_dir(run.dir)


main(body, __doc__, saves=20, size=8000, dir=1)
