#!/usr/bin/env python3
"""Writes to files of several names in two threads, and syncs each a few times: program.py FOLDER ROUNDS.

Prints what it did, one sync a line, with tabs: process, name of the thread, file, what asked for the sync, begin and end on the monotonic clock in ns,
and the time of day of the end.
"""

import os
import sys
import threading
import time
from pathlib import Path

FILES = {
    # Name of the thread -> its files.
    "wal": ["000000010000000000000001", "wal"],
    "a b 7 S 0": ["two  blanks ", "1,2,S,3,4,5,6", "a" * 50],
}
folder, rounds = sys.argv[1], int(sys.argv[2])
lines = []


def sync(name: str) -> None:
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
    for turn in range(rounds):
        for file in FILES[name]:
            flags = os.O_RDWR | os.O_CREAT
            is_durable = turn % 3 == 2
            fd = os.open(f"{folder}/{file}", flags | (os.O_DSYNC if is_durable else 0))
            begin = time.monotonic_ns()
            os.pwrite(fd, bytes([turn + 1]) * 65536, 65536 * turn)
            what = "O_DSYNC"
            if not is_durable:
                begin = time.monotonic_ns()
                (os.fdatasync if turn % 3 else os.fsync)(fd)
                what = "fdatasync" if turn % 3 else "fsync"
            end = time.monotonic_ns()
            of_day = time.strftime("%H:%M:%S")
            lines.append(
                (begin, f"{os.getpid()}\t{name}\t{file}\t{what}\t{begin}\t{end}\t{of_day}")
            )
            os.close(fd)


threads = [threading.Thread(target=sync, args=(name,)) for name in FILES]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for _, line in sorted(lines):
    print(line)
