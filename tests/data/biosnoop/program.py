#!/usr/bin/env python3
"""Writes to files of two file systems by a thread each, past the page cache and through it, and reads back: program.py FOLDER ROUNDS, and $OTHER.

Prints what it did, one call a line, with tabs: process, thread, name of the thread, file, call, bytes, begin and end on the monotonic clock in ns.
"""

import mmap
import os
import sys
import threading
import time
from pathlib import Path

FOLDERS = {"wal": sys.argv[1], "a b vdb R": os.environ["OTHER"]}
rounds = int(sys.argv[2])
lines = []


def work(name: str) -> None:
    tid = threading.get_native_id()
    Path(f"/proc/self/task/{tid}/comm").write_text(name)
    buffer = mmap.mmap(-1, 16384)
    buffer.write(b"x" * 16384)

    def call(what: str, file: str, count: int, do) -> None:
        begin = time.monotonic_ns()
        do()
        end = time.monotonic_ns()
        lines.append(
            (begin, f"{os.getpid()}\t{tid}\t{name}\t{file}\t{what}\t{count}\t{begin}\t{end}")
        )

    direct = os.open(f"{FOLDERS[name]}/direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
    cached = os.open(f"{FOLDERS[name]}/cached", os.O_RDWR | os.O_CREAT, 0o600)
    for turn in range(rounds):
        call("pwrite", "direct", 16384, lambda at=turn: os.pwrite(direct, buffer, 16384 * at))
        call("pread", "direct", 16384, lambda at=turn: os.preadv(direct, [buffer], 16384 * at))
        os.pwrite(cached, bytes([turn + 1]) * 65536, 65536 * turn)
        call("fsync", "cached", 65536, lambda: os.fsync(cached))


threads = [threading.Thread(target=work, args=(name,)) for name in FOLDERS]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for _, line in sorted(lines):
    print(line)
