#!/usr/bin/env python3
"""Requests persistence in every possible way, each on its own file, and marks each case in the trace.

syncs.py FOLDER TRACE_MARKER

A mark is `case NAME ino=N path=P bytes=N calls=N op=OP`: the dirty bytes, the number of requests, and the call.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(sys.argv[1])
MARKER = os.open(sys.argv[2], os.O_WRONLY)
LIBC = ctypes.CDLL(None, use_errno=True)
PAGE = 4096
# Incompressible, so that a file system with compression writes it unchanged.
DATA = os.urandom(1 << 20)


def mark(text: str) -> None:
    os.write(MARKER, text.encode() + b"\n")


def dirty(name: str, size: int = 3 * PAGE, flags: int = 0) -> int:
    """Creates a file with dirty pages."""
    fd = os.open(FOLDER / name, os.O_RDWR | os.O_CREAT | flags, 0o644)
    os.write(fd, DATA[:size])
    return fd


def case(
    name: str,
    fd: int,
    size: int,
    op: str,
    sync: Callable[[], object],
    calls: int = 1,
    inode: bool = True,
) -> None:
    ino = f"ino={os.fstat(fd).st_ino} " if inode else ""
    path = str(Path(f"/proc/self/fd/{fd}").readlink()).encode("unicode_escape").decode()
    mark(f"case {name} {ino}bytes={size} calls={calls} op={op} path={path}")
    sync()
    mark(f"done {name}")
    os.close(fd)


def sync_file_range(fd: int, offset: int, size: int, flags: int) -> None:
    if LIBC.sync_file_range(fd, ctypes.c_int64(offset), ctypes.c_int64(size), flags):
        raise OSError(ctypes.get_errno(), "sync_file_range")


def syncfs(fd: int) -> None:
    if LIBC.syncfs(fd):
        raise OSError(ctypes.get_errno(), "syncfs")


def in_threads(number: int, work: Callable[[int], object]) -> None:
    threads = [threading.Thread(target=work, args=(each,)) for each in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    os.sync()
    fd = dirty("fsync")
    case("fsync", fd, 3 * PAGE, "fsync", lambda: os.fsync(fd))
    fd = dirty("fdatasync")
    case("fdatasync", fd, 3 * PAGE, "fdatasync", lambda: os.fdatasync(fd))
    fd = dirty("big", 1 << 20)
    case("big", fd, 1 << 20, "fsync", lambda: os.fsync(fd))
    fd = os.open(FOLDER / "big", os.O_RDWR)
    case("empty", fd, 0, "fsync", lambda: os.fsync(fd))
    os.pwrite(fd := os.open(FOLDER / "big", os.O_RDWR), DATA[:100], 10 * PAGE + 50)
    os.pwrite(fd, DATA[:100], 20 * PAGE)
    case("overwrite", fd, 2 * PAGE, "fdatasync", lambda: os.fdatasync(fd))
    fd = dirty("odd\nname\\ with space=1")
    case("odd-name", fd, 3 * PAGE, "fsync", lambda: os.fsync(fd))
    fd = dirty("gone")
    (FOLDER / "gone").unlink()
    case("deleted", fd, 3 * PAGE, "fsync", lambda: os.fsync(fd))
    fd = os.open(FOLDER, os.O_RDONLY)
    case("folder", fd, 0, "fsync", lambda: os.fsync(fd))

    fd = os.open(FOLDER / "dsync", os.O_RDWR | os.O_CREAT | os.O_DSYNC, 0o644)
    case("dsync", fd, 2 * PAGE, "write", lambda: os.write(fd, DATA[: 2 * PAGE]))
    fd = os.open(FOLDER / "osync", os.O_RDWR | os.O_CREAT | os.O_SYNC, 0o644)
    case("osync", fd, 2 * PAGE, "write", lambda: os.write(fd, DATA[: 2 * PAGE]))
    fd = os.open(FOLDER / "direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT | os.O_DSYNC, 0o644)
    page = mmap.mmap(-1, PAGE)
    case("direct-dsync", fd, 0, "write", lambda: os.pwritev(fd, [page], 0))

    fd = dirty("msync", 4 * PAGE)
    os.fsync(fd)
    memory = mmap.mmap(fd, 4 * PAGE)
    memory[PAGE : PAGE + 5] = b"hello"
    case("msync", fd, PAGE, "msync", lambda: memory.flush(0, 4 * PAGE))

    fd = dirty("range", 8 * PAGE)
    # wait before, write, wait after
    case("range", fd, 4 * PAGE, "sync_file_range", lambda: sync_file_range(fd, 0, 4 * PAGE, 7))

    fds = [dirty(f"thread{each}") for each in range(4)]
    mark("case threads calls=4 op=fsync")
    in_threads(4, lambda each: os.fsync(fds[each]))
    mark("done threads")
    fd = dirty("one")

    def together(each: int) -> None:
        for round_ in range(5):
            os.pwrite(fd, DATA[:PAGE], (each * 5 + round_) * PAGE)
            os.fsync(fd)

    mark("case one-file calls=20 op=fsync")
    in_threads(4, together)
    mark("done one-file")

    fd = dirty("syncfs")
    case("syncfs", fd, 3 * PAGE, "syncfs", lambda: syncfs(fd))
    fd = dirty("sync")
    case("sync", fd, 3 * PAGE, "sync", os.sync)

    fd = dirty("background")
    names = {"dirty_writeback_centisecs": "10", "dirty_expire_centisecs": "10"}
    before = {name: Path("/proc/sys/vm", name).read_text() for name in names}

    def wait() -> None:
        for name, value in names.items():
            Path("/proc/sys/vm", name).write_text(value)
        time.sleep(3)
        for name, value in before.items():
            Path("/proc/sys/vm", name).write_text(value)

    case("background", fd, 3 * PAGE, "background", wait)

    fd = dirty("uring", 0)
    job = [
        "fio",
        "--name=u",
        f"--filename={FOLDER}/uring",
        "--ioengine=io_uring",
        "--rw=write",
        "--bs=4k",
    ]
    job += ["--size=40k", "--fsync=1", "--output=/dev/null"]
    # fio creates the file again, and does not sync after the last write.
    case(
        "uring",
        fd,
        9 * PAGE,
        "fsync",
        lambda: subprocess.run(job, check=True),
        calls=9,
        inode=False,
    )

    # A file system on top of this one: one request, not two.
    for name in ("lower", "upper", "work", "merged"):
        (FOLDER / name).mkdir()
    where = ",".join(f"{k}dir={FOLDER}/{k}" for k in ("lower", "upper", "work"))
    if (
        subprocess.run(
            ["mount", "-t", "overlay", "-o", where, "overlay", f"{FOLDER}/merged"]
        ).returncode
        == 0
    ):
        fd = dirty("merged/file")
        case("overlay", fd, 3 * PAGE, "fsync", lambda: os.fsync(fd), inode=False)
        subprocess.run(["umount", f"{FOLDER}/merged"], check=True)


main()
