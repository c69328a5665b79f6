#!/usr/bin/env python3
"""Syncs files while a device refuses writes, so that the journal of the file system fails, and looks later at what is on the disk. Needs root.

DIR must be on a device-mapper device with one linear table (the device `flakey` of tests/kernel). `before` is written and synced, `waiting` is
written and not synced. The device then refuses writes. A new file, `refused`, is written and synced, which needs the journal; then come an fsync
of `waiting`, one of `before`, which is clean, a sync() of everything, and one more write and fsync of `before`, and the last fsyncs again after
the device works again. The report has what each call returned.

Run it once more with `case=look` after DIR has been mounted again: the report then says what each file holds, which is `old`, `new` or `other`,
or null if the file is missing.
"""

import os
from collections.abc import Callable
from pathlib import Path

from device_mapper import dmsetup, load, mapping, refusing
from workload import Run, main, pattern

SIZE = 4096
FILES = ("before", "waiting", "refused")
OLD, NEW = pattern(SIZE, seed=1), pattern(SIZE, seed=2)


def look(directory: Path) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in FILES:
        path = directory / name
        content = path.read_bytes() if path.exists() else None
        names = {OLD: "old", NEW: "new"}
        found[name] = None if content is None else names.get(content, "other")
    return found


def write_and_sync(run: Run) -> None:
    name = mapping(run.dir)
    healthy = dmsetup("table", name).strip()
    calls: list[tuple[str, str, int]] = []

    def tried(what: str, file: str, call: Callable[[], object]) -> None:
        try:
            call()
            returned = 0
        except OSError as error:
            run.failed(error)
            returned = -(error.errno or 0)
        calls.append((what, file, returned))

    before = run.open(run.dir / "before")
    run.write(before, OLD, 0)
    tried("fsync", "before", lambda: run.sync(before))
    waiting = run.open(run.dir / "waiting")
    run.write(waiting, NEW, 0)
    descriptors: list[int] = []
    with run.timed():
        load(name, refusing(healthy))
        try:
            tried("open", "refused", lambda: descriptors.append(run.open(run.dir / "refused")))
            for refused in descriptors:
                tried("write", "refused", lambda fd=refused: run.write(fd, NEW, 0))
                tried("fsync", "refused", lambda fd=refused: run.sync(fd))
            tried("fsync", "waiting", lambda: run.sync(waiting))
            tried("fsync", "before", lambda: run.sync(before))
            tried("sync", "", run.sync_all)
            tried("write", "before", lambda: run.write(before, NEW, 0))
            tried("fsync", "before", lambda: run.sync(before))
        finally:
            load(name, healthy)
        for fd, file in ((waiting, "waiting"), (before, "before")):
            tried("fsync", file, lambda fd=fd: run.sync(fd))
    for fd in (before, waiting, *descriptors):
        os.close(fd)
    run.more["calls"] = calls


def body(run: Run) -> None:
    if run.text("case") == "look":
        run.more["on_disk"] = look(run.dir)
    else:
        write_and_sync(run)


main(body, __doc__, case=("write", "look"))
