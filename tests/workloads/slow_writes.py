"""Cases of known_truth.py in which a write waits, and what for is known."""

from __future__ import annotations

import mmap
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from workload import Run, pattern

if TYPE_CHECKING:
    from known_truth import Timed

PAGE = 4096
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def inode_lock(run: Run, timed: Timed) -> None:
    """Direct writes to new blocks hold the lock of the file while the device works. Another thread writes to the file meanwhile."""
    path = run.dir / "shared"
    holder_began = threading.Barrier(2)
    memory = mmap.mmap(-1, 16 * PAGE)

    def hold() -> None:
        fd = run.open(path, os.O_WRONLY | os.O_DIRECT)
        for n in range(run.number("syncs")):
            holder_began.wait()
            with timed.call("direct write", path=str(path), bytes=len(memory)):
                os.pwritev(fd, [memory], (n + 1) << 20)
        os.close(fd)

    def wait() -> None:
        fd = run.open(path, os.O_WRONLY)
        for n in range(run.number("syncs")):
            holder_began.wait()
            # The other thread is in its write by then: the device takes 20 ms for it.
            time.sleep(0.004)
            timed.write(fd, path, pattern(1000, seed=n), 100)
        os.close(fd)

    run.in_threads(2, lambda number: (hold, wait)[number]())


def journal_buffer(run: Run, timed: Timed) -> None:
    """One thread forces commits. Another one sets the times of a file, whose inode is in the block that the commit writes."""
    path, other = run.dir / "shared", run.dir / "other"
    done = threading.Event()

    def commit() -> None:
        fd = run.open(path, os.O_WRONLY)
        for n in range(run.number("syncs")):
            run.write(fd, pattern(PAGE, seed=n), (n + 1) * PAGE)
            timed.sync(fd, path, PAGE)
            time.sleep(0.01)
        os.close(fd)
        done.set()

    def change() -> None:
        fd = run.open(other, os.O_WRONLY)
        n = 0
        while not done.is_set():
            # A write sets them too, but only once in a tick of the clock.
            with timed.call("utime", path=str(other)):
                os.utime(fd, ns=(n, n))
            n += 1
            time.sleep(0.002)
        os.close(fd)

    run.in_threads(2, lambda number: (commit, change)[number]())


def journal_handle(run: Run, timed: Timed) -> None:
    """One thread allocates blocks in a part of the disk whose bitmap is not cached, and reads that in a transaction. A second one forces the
    commit of the transaction, which waits for the first. A third one sets the times of a file, for which it needs the next transaction.
    """
    path, other = run.dir / "shared", run.dir / "other"
    rounds = threading.Barrier(3)

    def allocate() -> None:
        for n in range(run.number("syncs")):
            fd = run.open(run.dir / f"folder-{n}" / "new", os.O_CREAT | os.O_WRONLY)
            DROP_CACHES.write_text("3")
            rounds.wait()
            with timed.call("allocate", path=str(run.dir / f"folder-{n}" / "new")):
                os.posix_fallocate(fd, 0, 64 << 10)
            os.close(fd)
            rounds.wait()

    def commit() -> None:
        fd = run.open(path, os.O_WRONLY)
        for n in range(run.number("syncs")):
            run.write(fd, pattern(PAGE, seed=n), (n + 1) * PAGE)
            rounds.wait()
            time.sleep(0.004)
            with timed.call("syncfs", path=str(path)):
                run.syncfs(fd)
            rounds.wait()
        os.close(fd)

    def change() -> None:
        fd = run.open(other, os.O_WRONLY)
        for _ in range(run.number("syncs")):
            rounds.wait()
            for k in range(20):
                time.sleep(0.002)
                with timed.call("utime", path=str(other)):
                    os.utime(fd, ns=(k, k))
            rounds.wait()
        os.close(fd)

    run.in_threads(3, lambda number: (allocate, commit, change)[number]())


def prepare_journal_handle(run: Run) -> None:
    prepare_shared(run)
    for n in range(run.number("syncs")):
        (run.dir / f"folder-{n}").mkdir()


def journal_space(run: Run, timed: Timed) -> None:
    """Creates folders until the small journal is full."""
    for n in range(run.number("syncs")):
        path = run.dir / f"folder-{n}"
        with timed.call("mkdir", path=str(path)):
            path.mkdir()


def page_writeback(run: Run, timed: Timed) -> None:
    """One thread syncs a page. Another one writes to the page meanwhile, which the device needs unchanged."""
    path = run.dir / "shared"
    synced = threading.Barrier(2)

    def sync() -> None:
        fd = run.open(path, os.O_WRONLY)
        for n in range(run.number("syncs")):
            run.write(fd, pattern(PAGE, seed=n), 0)
            synced.wait()
            timed.sync(fd, path, PAGE, "fdatasync")
            synced.wait()
        os.close(fd)

    def write() -> None:
        fd = run.open(path, os.O_WRONLY)
        for n in range(run.number("syncs")):
            synced.wait()
            time.sleep(0.004)
            timed.write(fd, path, pattern(100, seed=n), 0)
            synced.wait()
        os.close(fd)

    run.in_threads(2, lambda number: (sync, write)[number]())


def prepare_shared(run: Run) -> None:
    for name in ("shared", "other"):
        os.close(run.make_file(run.dir / name, PAGE))
