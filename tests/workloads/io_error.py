#!/usr/bin/env python3
"""Overwrites and fdatasyncs pages while the device rejects writes for a part of the time. Needs root.

DIR must be on a device-mapper device with one linear table (the device `flakey` of tests/kernel). The pages exist before, and fdatasync
does not write times, so the errors affect data and not the journal; errors of the journal would turn the file system read-only. Mount it
with a long commit= interval.
"""

import os

from device_mapper import dmsetup, load, mapping, refusing
from workload import Run, main, pattern


def body(run: Run) -> None:
    pages, size = run.number("pages"), 4096
    name = mapping(run.dir)
    healthy = dmsetup("table", name).strip()
    broken = refusing(healthy)
    fd = run.make_file(run.dir / "data", pages * size)
    first, last = pages // 3, pages * 2 // 3
    try:
        with run.timed():
            for n in range(pages):
                if n == first:
                    load(name, broken)
                if n == last:
                    load(name, healthy)
                run.write(fd, pattern(size, seed=n), n * size)
                try:
                    run.sync(fd, "fdatasync")
                except OSError as error:
                    run.failed(error)
    finally:
        load(name, healthy)
    os.close(fd)
    run.more["refused"] = last - first


main(body, __doc__, pages=12)
