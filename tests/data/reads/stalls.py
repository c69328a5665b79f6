#!/usr/bin/env python3
"""The program of *Page Sized Writes*: FILE SIZE WRITES [prepare cold|warm].

One thread writes SIZE bytes to the begin of each page of a file that exists, while another one syncs it again and again. `prepare` makes the
file, which is then in page cache or not.
"""

import os
import sys
import threading

PAGE = 4096


def prepare(path: str, writes: int, cache: str) -> None:
    fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR)
    os.write(fd, b"o" * PAGE * writes)
    os.fsync(fd)
    if cache == "cold":
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def overwrite(path: str, size: int, writes: int) -> None:
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    data, is_written = b"K" * size, threading.Event()

    def sync() -> None:
        while not is_written.is_set():
            os.fsync(fd)

    syncing = threading.Thread(target=sync)
    syncing.start()
    for page in range(writes):
        os.lseek(fd, page * PAGE, os.SEEK_SET)
        os.write(fd, data)
    is_written.set()
    syncing.join()
    os.close(fd)


file, length, number, *how = sys.argv[1:]
if how:
    prepare(file, int(number), how[1])
else:
    overwrite(file, int(length), int(number))
