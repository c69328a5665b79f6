#!/usr/bin/env python3
"""Syncs whose cause is known, because the set-up forces it. The report has each call with its times.

step=prepare creates the files, so that a recording of step=run holds nothing else. Times are ns of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import slow_writes
from device_mapper import dmsetup, load, mapping, refusing
from neighbour import Neighbour
from postgres_cluster import Cluster
from workload import Run, main, pattern

PAGE = 4096
FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
VM = Path("/proc/sys/vm")


class Timed:
    """Makes the calls of a run, and keeps each with its thread, its file and its times."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.calls: list[dict[str, object]] = []
        run.more["calls"] = self.calls

    @contextmanager
    def call(self, op: str, **facts: object) -> Iterator[None]:
        """Measures a call. An error of the operating system is kept as `errno`, and raises nothing."""
        row: dict[str, object] = {"op": op, "tid": threading.get_native_id()} | facts
        row["start_ns"] = time.monotonic_ns()
        try:
            yield
            row["errno"] = 0
        except OSError as error:
            row["errno"] = error.errno
            self.run.failed(error)
        row["end_ns"] = time.monotonic_ns()
        self.calls.append(row)

    def in_order(self) -> None:
        """Sorts the calls of all threads by their starts."""
        self.calls.sort(key=lambda row: int(str(row["start_ns"])))

    def sync(self, fd: int, path: Path, dirty: int, op: str = "fsync") -> None:
        """Syncs a file. `dirty` bytes of it were written since its last sync."""
        with self.call(op, path=str(path), dirty=dirty):
            self.run.sync(fd, op)

    def write(self, fd: int, path: Path, data: bytes, at: int) -> None:
        with self.call("write", path=str(path), bytes=len(data)):
            self.run.write(fd, data, at)


def files(run: Run) -> list[Path]:
    return [run.dir / f"file-{k}" for k in range(run.number("threads"))]


def prepare_files(run: Run) -> None:
    """Creates a synced file for each thread, as large as all of its later writes."""
    for path in files(run):
        os.close(run.make_file(path, run.number("syncs") * run.number("size")))


@contextmanager
def dirty_limits(run: Run, **limits: int) -> Iterator[None]:
    """Sets limits of dirty page cache for a while. Needs root."""
    names = ("dirty_bytes", "dirty_background_bytes", "dirty_ratio", "dirty_background_ratio")
    before = {name: (VM / name).read_text() for name in names}
    try:
        for name, value in limits.items():
            (VM / name).write_text(str(value))
        run.more["limits"] = limits
        yield
    finally:
        # Either the bytes or the ratio is in force. The other one is 0, which cannot be written.
        for name, text in before.items():
            if int(text):
                (VM / name).write_text(text)


@contextmanager
def soon_written_back(run: Run) -> Iterator[None]:
    """Lets flusher threads write soon what a buffered neighbour has written."""
    if run.text("neighbour") != "buffered":
        yield
        return
    with dirty_limits(run, dirty_bytes=64 << 20, dirty_background_bytes=256 << 10):
        yield


# --- syncs ---------------------------------------------------------------------------------------


def syncs(run: Run, timed: Timed) -> None:
    """Each thread appends to a file of its own and syncs it. A neighbour writes from the sync `first` on until the sync `last`."""
    with soon_written_back(run):
        appends(run, timed)


def appends(run: Run, timed: Timed) -> None:
    size, op = run.number("size"), run.text("sync")
    at = run.number("syncs") * size
    first, last = run.number("first"), run.number("last") or run.number("syncs")
    neighbour = Neighbour(run)
    with_it = neighbour.kind != "none"

    def write(thread: int) -> None:
        path = files(run)[thread]
        fd = run.open(path, os.O_WRONLY)
        for n in range(run.number("syncs")):
            if with_it and n == first:
                neighbour.start()
            run.write(fd, pattern(size, seed=n), at + n * size)
            timed.sync(fd, path, size, op)
            time.sleep(run.number("gap_ms") / 1000)
            if with_it and n + 1 == last:
                run.more["neighbour"] = neighbour.stop()
        os.close(fd)

    if run.number("threads") == 1:
        write(0)
    else:
        run.in_threads(run.number("threads"), write)


def prepare_syncs(run: Run) -> None:
    prepare_files(run)
    Neighbour(run).prepare()


# --- commits -------------------------------------------------------------------------------------


def group(run: Run, timed: Timed) -> None:
    """All threads append to files of their own, and call fsync at the same time, or each `gap_ms` after the one before."""
    size, threads = run.number("size"), run.number("threads")
    at = run.number("syncs") * size
    together = threading.Barrier(threads)

    def write(thread: int) -> None:
        path = files(run)[thread]
        fd = run.open(path, os.O_WRONLY)
        for n in range(run.number("syncs")):
            run.write(fd, pattern(size, seed=n), at + n * size)
            together.wait()
            time.sleep(thread * run.number("gap_ms") / 1000)
            timed.sync(fd, path, size)
        os.close(fd)

    run.in_threads(threads, write)


def forced(run: Run, timed: Timed) -> None:
    """One thread overwrites a file in place and calls fdatasync, which needs no commit. Another one forces commits meanwhile."""
    size, by = run.number("size"), run.text("by")
    path, other = files(run)[0], run.dir / "other"
    done = threading.Event()

    def overwrite() -> None:
        fd = run.open(path, os.O_WRONLY)
        n = 0
        while not done.is_set():
            run.write(fd, pattern(size, seed=n), n % run.number("syncs") * size)
            timed.sync(fd, path, size, "fdatasync")
            n += 1
        os.close(fd)

    def force() -> None:
        time.sleep(run.number("gap_ms") / 1000)
        fd = run.open(other, os.O_WRONLY)
        for n in range(run.number("forces")):
            # The new size of the file is for the journal.
            run.write(fd, pattern(size, seed=n), n * size)
            if by == "freeze":
                with timed.call("freeze", path=str(run.dir)):
                    fcntl.ioctl(fd, FIFREEZE, 0)
                time.sleep(0.05)
                with timed.call("thaw", path=str(run.dir)):
                    fcntl.ioctl(fd, FITHAW, 0)
            elif by == "fsync":
                timed.sync(fd, other, size)
            else:
                with timed.call(by, path=str(other), dirty=size):
                    if by == "sync":
                        run.sync_all()
                    else:
                        run.syncfs(fd)
            time.sleep(run.number("gap_ms") / 1000)
        os.close(fd)
        done.set()

    run.in_threads(2, lambda number: (overwrite, force)[number]())


def prepare_forced(run: Run) -> None:
    prepare_files(run)
    os.close(run.make_file(run.dir / "other", PAGE))


def aged(run: Run, timed: Timed) -> None:
    """Syncs a file; then creates a file without a sync, and waits until the timer of the journal commits it. Several times."""
    path = files(run)[0]
    fd = run.open(path, os.O_WRONLY)
    for n in range(run.number("rounds")):
        run.write(fd, pattern(PAGE, seed=n), n * PAGE)
        timed.sync(fd, path, PAGE)
        with timed.call("create", path=str(run.dir / f"aged-{n}")):
            os.close(run.open(run.dir / f"aged-{n}"))
        time.sleep(3)
    os.close(fd)


def full(run: Run, timed: Timed) -> None:
    """Creates folders, whose blocks are metadata, until the journal has been full several times. One fsync before and after."""
    path = files(run)[0]
    fd = run.open(path, os.O_WRONLY)
    run.write(fd, pattern(PAGE), 0)
    timed.sync(fd, path, PAGE)
    for n in range(run.number("files")):
        with timed.call("mkdir", path=str(run.dir / f"folder-{n}")):
            (run.dir / f"folder-{n}").mkdir()
    run.write(fd, pattern(PAGE, seed=1), PAGE)
    timed.sync(fd, path, PAGE)
    os.close(fd)


def fast(run: Run, timed: Timed) -> None:
    """Overwrites and syncs a file. Before two of three syncs, it does what a fast commit cannot hold."""
    path = files(run)[0]
    fd = run.open(path, os.O_WRONLY)
    folders = [run.dir / name for name in ("one", "two")]
    for n in range(run.number("syncs")):
        cause = (None, "xattr", "rename dir")[n % 3]
        if cause == "xattr":
            os.setxattr(path, "user.n", str(n).encode())
        elif cause == "rename dir":
            (folders[0] / "moved").rename(folders[1] / "moved")
            folders.reverse()
        run.write(fd, pattern(PAGE, seed=n), n * PAGE)
        with timed.call("fsync", path=str(path), dirty=PAGE, ineligible=cause):
            run.sync(fd, "fsync")
    os.close(fd)


def prepare_fast(run: Run) -> None:
    prepare_files(run)
    for name in ("one", "two", "one/moved"):
        (run.dir / name).mkdir()
    os.setxattr(files(run)[0], "user.n", b"-")


def others(run: Run, timed: Timed) -> None:
    """Appends to another file without a sync, then appends to a file and syncs it. Blocks are allocated at each write, so the commit
    has to write the data of the other file first."""
    path, other = files(run)[0], run.dir / "other"
    fd, other_fd = run.open(path, os.O_WRONLY), run.open(other, os.O_WRONLY)
    size, block = run.number("size"), run.number("block")
    at = run.number("syncs") * size
    for n in range(run.number("syncs")):
        timed.write(other_fd, other, pattern(block, seed=n), n * block)
        run.write(fd, pattern(size, seed=n), at + n * size)
        timed.sync(fd, path, size)
    os.close(fd)
    os.close(other_fd)


def prepare_others(run: Run) -> None:
    prepare_files(run)
    os.close(run.make_file(run.dir / "other", 0))


# --- pages ---------------------------------------------------------------------------------------


def cold(run: Run, timed: Timed) -> None:
    """Overwrites a part of a page that is not in the page cache, so that the write reads it first; then the same page, now cached."""
    path = files(run)[0]
    Path(VM / "drop_caches").write_text("3")
    fd = run.open(path, os.O_RDWR)
    # Read ahead would cache the next pages.
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    for n in range(run.number("syncs")):
        for _ in ("cold", "cached"):
            timed.write(fd, path, pattern(1000, seed=n), n * PAGE + 100)
            timed.sync(fd, path, PAGE, "fdatasync")
    os.close(fd)


def blocked(run: Run, timed: Timed) -> None:
    """Writes more than may be dirty, without any sync, so that writes wait for writeback. One fsync of another file ends it."""
    path, size = files(run)[0], run.number("block")
    small = run.dir / "small"
    fds = [run.open(each, os.O_WRONLY) for each in (path, small)]
    with dirty_limits(run, dirty_bytes=4 << 20, dirty_background_bytes=1 << 20):
        for at in range(0, run.number("mb") << 20, size):
            timed.write(fds[0], path, pattern(size), at)
    run.write(fds[1], pattern(PAGE), 0)
    timed.sync(fds[1], small, PAGE)
    for fd in fds:
        os.close(fd)


def prepare_blocked(run: Run) -> None:
    for name in ("file-0", "small"):
        os.close(run.make_file(run.dir / name, PAGE))


# --- errors --------------------------------------------------------------------------------------


def error(run: Run, timed: Timed) -> None:
    """The device refuses the write of one page. Needs root and the device `flakey`.

    Four descriptors sync the file: the one that wrote, while writes fail, and again when the device is healthy; twice one that
    was open before; one that was opened afterwards. Then the page is written and synced again.
    """
    path = files(run)[0]
    fd, before = run.open(path, os.O_RDWR), run.open(path, os.O_RDWR)
    name = mapping(run.dir)
    healthy = dmsetup("table", name).strip()
    run.write(fd, pattern(PAGE), PAGE)
    timed.sync(fd, path, PAGE, "fdatasync")
    run.write(fd, pattern(PAGE, seed=1), 0)
    load(name, refusing(healthy))
    try:
        timed.sync(fd, path, PAGE, "fdatasync")
    finally:
        load(name, healthy)
    timed.sync(fd, path, 0, "fdatasync")
    for _ in range(2):
        timed.sync(before, path, 0, "fdatasync")
    after = run.open(path, os.O_RDWR)
    timed.sync(after, path, 0, "fdatasync")
    run.write(fd, pattern(PAGE, seed=2), 0)
    timed.sync(fd, path, PAGE, "fdatasync")
    for each in (fd, before, after):
        os.close(each)


# --- what is not needed, or missing --------------------------------------------------------------


def empty(run: Run, timed: Timed) -> None:
    """Syncs a file with nothing dirty, after `first` syncs of a dirty page."""
    path = files(run)[0]
    fd = run.open(path, os.O_RDWR)
    for n in range(run.number("first")):
        run.write(fd, pattern(PAGE, seed=n), 0)
        timed.sync(fd, path, PAGE)
    for _ in range(run.number("syncs")):
        timed.sync(fd, path, 0)


def in_place(run: Run, timed: Timed) -> None:
    """Overwrites blocks that exist. With sync=fsync, fdatasync would do."""
    path = files(run)[0]
    fd = run.open(path, os.O_RDWR)
    for n in range(run.number("syncs")):
        run.write(fd, pattern(PAGE, seed=n), n * PAGE)
        timed.sync(fd, path, PAGE, run.text("sync"))


def small_files(run: Run, timed: Timed) -> None:
    """Creates small files and syncs one after another."""
    for n in range(run.number("syncs")):
        path = run.dir / f"{run.text('prefix')}{n}{run.text('suffix')}"
        fd = run.open(path)
        run.write(fd, pattern(200))
        timed.sync(fd, path, 200)
        os.close(fd)


def replace(run: Run, timed: Timed) -> None:
    """Saves a file under another name, syncs it and renames it; then syncs `then`: the file again, its folder, or nothing."""
    path, temporary = run.dir / "settings", run.dir / "settings.tmp"
    for n in range(run.number("syncs")):
        fd = run.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        run.write(fd, pattern(2000, seed=n))
        timed.sync(fd, temporary, 2000)
        with timed.call("rename", path=str(path)):
            temporary.rename(path)
        if run.text("then") == "file":
            timed.sync(fd, path, 0)
        elif run.text("then") == "folder":
            folder = os.open(run.dir, os.O_RDONLY | os.O_DIRECTORY)
            timed.sync(folder, run.dir, 0)
            os.close(folder)
        os.close(fd)


def direct(run: Run, timed: Timed) -> None:
    """Overwrites blocks by direct I/O, without any sync: the cache of the device may hold them. Ends with one fsync of another file."""
    path, small = files(run)[0], run.dir / "small"
    fd = run.open(path, os.O_WRONLY | os.O_DIRECT)
    memory = mmap.mmap(-1, PAGE)
    for n in range(run.number("syncs")):
        memory.seek(0)
        memory.write(pattern(PAGE, seed=n))
        with timed.call("direct write", path=str(path), bytes=PAGE):
            os.pwritev(fd, [memory], n * PAGE)
    os.close(fd)
    fd = run.open(small, os.O_WRONLY)
    run.write(fd, pattern(PAGE), 0)
    timed.sync(fd, small, PAGE)


def durable(run: Run, timed: Timed) -> None:
    """Overwrites blocks by direct I/O with O_DSYNC: a write with FUA, or with a flush if the device has no FUA."""
    path = files(run)[0]
    fd = run.open(path, os.O_WRONLY | os.O_DIRECT | os.O_DSYNC)
    memory = mmap.mmap(-1, PAGE)
    for n in range(run.number("syncs")):
        memory.seek(0)
        memory.write(pattern(PAGE, seed=n))
        run.count("dsync_write")
        with timed.call("dsync write", path=str(path), bytes=PAGE):
            os.pwritev(fd, [memory], n * PAGE)
    os.close(fd)


def prepare_direct(run: Run) -> None:
    prepare_files(run)
    os.close(run.make_file(run.dir / "small", PAGE))


# --- PostgreSQL ----------------------------------------------------------------------------------


def prepare_postgres(run: Run) -> None:
    cluster = Cluster(run.dir)
    cluster.create(wal_sync_method="fdatasync")
    cluster.start()
    try:
        cluster.call("pgbench", "-i", "-q", "-s", "1")
    finally:
        cluster.stop()
    Neighbour(run).prepare()


def postgres(run: Run, timed: Timed) -> None:
    """pgbench on a cluster, while another process writes. pgbench measures each transaction: client, us, end in us since 1970."""
    cluster = Cluster(run.dir)
    neighbour = Neighbour(run)
    cluster.start()
    try:
        syncs = cluster.wal_syncs()
        neighbour.start()
        clients, each = str(run.number("threads")), str(run.number("syncs"))
        log = ["--log", f"--log-prefix={run.dir}/transactions"]
        with soon_written_back(run), timed.call("pgbench"):
            cluster.call("pgbench", "-n", "-c", clients, "-j", "1", "-t", each, *log)
        if neighbour.child:
            run.more["neighbour"] = neighbour.stop()
        run.more["wal_syncs"] = cluster.wal_syncs() - syncs
    finally:
        cluster.stop()
    run.exact = False
    rows = []
    for path in run.dir.glob("transactions.*"):
        for line in path.read_text().splitlines():
            client, _, latency, _, seconds, us = map(int, line.split()[:6])
            rows.append((client, latency, seconds * 10**6 + us))
    run.more["transactions_client_us_end_us"] = sorted(rows, key=lambda row: row[2])


Case = tuple[Callable[[Run], None], Callable[[Run, Timed], None]]
CASES: dict[str, Case] = {
    "syncs": (prepare_syncs, syncs),
    "group": (prepare_files, group),
    "forced": (prepare_forced, forced),
    "aged": (prepare_files, aged),
    "full": (prepare_files, full),
    "fast": (prepare_fast, fast),
    "others": (prepare_others, others),
    "cold": (prepare_files, cold),
    "blocked": (prepare_blocked, blocked),
    "error": (prepare_files, error),
    "empty": (prepare_files, empty),
    "in-place": (prepare_files, in_place),
    "small-files": (prepare_files, small_files),
    "replace": (prepare_files, replace),
    "direct": (prepare_direct, direct),
    "durable": (prepare_files, durable),
    "postgres": (prepare_postgres, postgres),
    "inode-lock": (slow_writes.prepare_shared, slow_writes.inode_lock),
    "journal-buffer": (slow_writes.prepare_shared, slow_writes.journal_buffer),
    "journal-handle": (slow_writes.prepare_journal_handle, slow_writes.journal_handle),
    "journal-space": (slow_writes.prepare_shared, slow_writes.journal_space),
    "page-writeback": (slow_writes.prepare_shared, slow_writes.page_writeback),
}


def body(run: Run) -> None:
    prepare, measure = CASES[run.text("case")]
    if run.text("step") == "prepare":
        prepare(run)
        # So that no page of the preparation is dirty in the recording.
        run.sync_all()
        return
    timed = Timed(run)
    with run.timed():
        measure(run, timed)
    timed.in_order()


main(
    body,
    __doc__,
    case=tuple(CASES),
    step=("run", "prepare"),
    syncs=10,
    threads=1,
    size=PAGE,
    sync=("fsync", "fdatasync"),
    gap_ms=0,
    rounds=2,
    files=800,
    by=("syncfs", "sync", "freeze", "fsync"),
    forces=3,
    then=("file", "folder", "nothing"),
    prefix="small-",
    suffix="",
    neighbour=("none", "direct", "buffered"),
    writers=1,
    block=64 << 10,
    mb=8,
    kb_per_second=8192,
    first=0,
    last=0,
)
