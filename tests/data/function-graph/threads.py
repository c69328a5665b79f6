#!/usr/bin/env python3
"""Writes to three files in three threads and syncs each a few times: threads.py FOLDER ROUNDS.

Prints what it did: thread, system call, begin and end on the monotonic clock in ns, one sync a line.
"""

import os
import sys
import threading
import time

folder, rounds = sys.argv[1], int(sys.argv[2])
lines = []


def sync(number: int) -> None:
    fd = os.open(f"{folder}/file{number}", os.O_RDWR | os.O_CREAT)
    tid = threading.get_native_id()
    for turn in range(rounds):
        os.pwrite(fd, bytes([turn + 1]) * 65536, 65536 * (turn % 3))
        call = os.fdatasync if turn % 2 else os.fsync
        begin = time.monotonic_ns()
        call(fd)
        lines.append((begin, f"{tid} {call.__name__} {begin} {time.monotonic_ns()}"))


threads = [threading.Thread(target=sync, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for _, line in sorted(lines):
    print(line)
