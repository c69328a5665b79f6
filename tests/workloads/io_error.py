#!/usr/bin/env python3
"""Overwrites and fdatasyncs pages while the device rejects writes for a part of the time. Needs root.

DIR must be on a device-mapper device with one linear table (the device `flakey` of tests/kernel). The pages exist before, and fdatasync
does not write times, so the errors affect data and not the journal; errors of the journal would turn the file system read-only. Mount it
with a long commit= interval.
"""

import os
import subprocess
from pathlib import Path

from workload import Run, main, pattern


def mapping(directory: Path) -> str:
    """Returns the device-mapper name of the device of a directory."""
    number = directory.stat().st_dev
    name = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/dm/name")
    if not name.exists():
        raise SystemExit(f"io_error: {directory} is not on a device-mapper device")
    return name.read_text().strip()


def dmsetup(*words: str) -> str:
    return subprocess.run(["dmsetup", *words], check=True, capture_output=True, text=True).stdout


def load(name: str, table: str) -> None:
    dmsetup("load", name, "--table", table)
    # --nolockfs: freezing the file system would sync it.
    dmsetup("suspend", "--nolockfs", "--noflush", name)
    dmsetup("resume", "--noudevsync", name)


def body(run: Run) -> None:
    pages, size = run.number("pages"), 4096
    name = mapping(run.dir)
    healthy = dmsetup("table", name).strip()
    start, length, kind, device, offset = healthy.split()[:5]
    if kind != "linear":
        raise SystemExit(f"io_error: the table of {name} is not linear but {kind}")
    # Never up, always down. Reads still work.
    broken = f"{start} {length} flakey {device} {offset} 0 3600 1 error_writes"
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
