#!/usr/bin/env python3
"""Files whose names are hard to log: spaces, newlines, names of events, other scripts, bytes that are not UTF-8."""

import os
from pathlib import Path

from workload import Run, main, pattern

NAMES = [
    b"with space",
    b" leading and trailing ",
    b"new\nline",
    b"tab\tand\rreturn",
    b"sync_start id=1 path=fake",
    b"bio_complete: bio=0x1 status=0",
    b"sync_end",
    b"(deleted)",
    b"quote\"'`back\\slash",
    b"percent%s%n",
    b"comma,semicolon;colon:=",
    b"-rf",
    b"\x1b[31mred",
    "Gr\u00fc\u00dfe-\u65e5\u672c\u8a9e-\U0001f980".encode(),
    b"no-utf8-\xff\xfe",
    b"n" * 255,
]


def body(run: Run) -> None:
    top = os.fsencode(run.dir)
    deep = b"/".join([top, *[b"directory %d" % n for n in range(run.number("depth"))]])
    Path(os.fsdecode(deep)).mkdir(parents=True, exist_ok=True)
    paths = [top + b"/" + name for name in NAMES] + [deep + b"/deep\nfile"]
    with run.timed():
        for path in paths:
            fd = run.open(path)
            run.write(fd, pattern(run.number("size")))
            run.sync(fd)
            os.close(fd)
    run.more["paths"] = [os.fsdecode(path) for path in paths]


main(body, __doc__, size=200, depth=20)
