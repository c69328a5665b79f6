#!/usr/bin/env python3
"""Syncs a file again after the device refused its data, and looks at what is in page cache and on the disk. Needs root.

DIR must be on a device-mapper device with one linear table (the device `flakey` of tests/kernel). The file has `old` pages on the disk. The
device then refuses writes, the program writes `new` pages and syncs: that call fails. The device works again, and the program syncs a second
time, as many do after an error, and then writes the pages once more and syncs a third time. The report has a line for each call: what it
returned, and which pages a read from page cache and one from the device then find.
"""

import errno
import mmap
import os
from pathlib import Path

from device_mapper import dmsetup, load, mapping, refusing
from workload import Run, main, pattern

SIZE = 4096


def found(path: Path, pages: int, flags: int) -> list[str]:
    """Returns for each page which of the patterns it holds."""
    names = {pattern(SIZE, seed=1): "old", pattern(SIZE, seed=2): "new"}
    fd = os.open(path, os.O_RDONLY | flags)
    # Direct I/O reads into memory that is aligned.
    page = mmap.mmap(-1, SIZE)
    contents = []
    try:
        for n in range(pages):
            try:
                os.preadv(fd, [page], n * SIZE)
                contents.append(names.get(page[:], "other"))
            except OSError as error:
                contents.append(errno.errorcode.get(error.errno or 0, "error"))
    finally:
        os.close(fd)
        page.close()
    return contents


def body(run: Run) -> None:
    pages = run.number("pages")
    path = run.dir / "data"
    name = mapping(run.dir)
    healthy = dmsetup("table", name).strip()
    fd = run.open(path)
    calls: list[dict[str, object]] = []

    def synced(what: str) -> None:
        try:
            run.sync(fd, "fdatasync")
            returned = 0
        except OSError as error:
            run.failed(error)
            returned = -(error.errno or 0)
        calls.append({"call": what, "ret": returned})

    def written(seed: int) -> None:
        for n in range(pages):
            run.write(fd, pattern(SIZE, seed=seed), n * SIZE)

    written(1)
    synced("old")
    with run.timed():
        load(name, refusing(healthy))
        try:
            written(2)
            synced("refused")
        finally:
            load(name, healthy)
        calls[-1]["cached"] = found(path, pages, 0)
        synced("again")
        calls[-1]["cached"] = found(path, pages, 0)
    # A read that goes past page cache writes dirty pages back first, so this is after the calls that matter.
    calls[-1]["on_disk"] = found(path, pages, os.O_DIRECT)
    try:
        written(2)
        synced("written again")
        calls[-1]["on_disk"] = found(path, pages, os.O_DIRECT)
    except OSError as error:
        run.failed(error)
        calls.append({"call": "written again", "write": -(error.errno or 0)})
    os.close(fd)
    run.more["calls"] = calls


main(body, __doc__, pages=4)
