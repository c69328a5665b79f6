"""The base of all workloads: options, counted sync calls, and the report as a line of JSON at the end.

A workload counts its own sync calls and bytes, so that a recording of it can be checked.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)

# The kinds of calls that enter the sync function of a file system for one file: sync requests.
# sync, syncfs and sync_file_range write back without it.
REQUEST_KINDS = (
    "fsync", "fdatasync", "msync", "sync_write", "dsync_write", "io_uring_fsync", "io_uring_fdatasync",
)  # fmt: skip

Value = int | str


class Run:
    """One run: its options and the counts for its report."""

    def __init__(self, directory: Path, options: dict[str, Value]) -> None:
        self.dir = directory
        self.options = options
        self.syncs: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.files = 0
        self.bytes = 0
        # False if other programs sync too (a database). The counts are then lower bounds.
        self.exact = True
        self.more: dict[str, object] = {}
        self.wall_ns = 0
        self._lock = threading.Lock()

    def number(self, name: str) -> int:
        value = self.options[name]
        assert isinstance(value, int)
        return value

    def text(self, name: str) -> str:
        return str(self.options[name])

    # --- counted calls ---

    def count(self, kind: str, times: int = 1) -> None:
        with self._lock:
            self.syncs[kind] += times

    def wrote(self, size: int) -> None:
        with self._lock:
            self.bytes += size

    def open(self, path: Path | bytes, flags: int = os.O_RDWR | os.O_CREAT) -> int:
        """Opens a file that this run writes, and counts it."""
        with self._lock:
            self.files += 1
        return os.open(path, flags, 0o644)

    def write(self, fd: int, data: bytes, offset: int | None = None, flags: int = 0) -> None:
        done = os.write(fd, data) if offset is None else os.pwritev(fd, [data], offset, flags)
        if done != len(data):
            raise OSError(errno.ENOSPC, "short write")
        self.wrote(done)

    def sync(self, fd: int, kind: str = "fsync") -> None:
        """Calls fsync or fdatasync, or nothing for `none`. A call that fails is counted too."""
        if kind == "none":
            return
        self.count(kind)
        if kind == "fsync":
            os.fsync(fd)
        else:
            os.fdatasync(fd)

    def sync_dir(self, directory: Path) -> None:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self.sync(fd)
        os.close(fd)

    def msync(self, area: mmap.mmap, offset: int = 0, size: int = 0) -> None:
        self.count("msync")
        if size:
            area.flush(offset, size)
        else:
            area.flush()

    def syncfs(self, fd: int) -> None:
        self.count("syncfs")
        checked(LIBC.syncfs(fd))

    def sync_all(self) -> None:
        self.count("sync")
        os.sync()

    def sync_file_range(self, fd: int, offset: int, size: int, flags: int) -> None:
        self.count("sync_file_range")
        checked(LIBC.sync_file_range(fd, ctypes.c_int64(offset), ctypes.c_int64(size), flags))

    def failed(self, error: OSError) -> None:
        with self._lock:
            self.errors[errno.errorcode.get(error.errno or 0, str(error.errno))] += 1

    # --- helpers ---

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measures the wall time of the workload, without its preparation."""
        begun = time.monotonic_ns()
        try:
            yield
        finally:
            self.wall_ns += time.monotonic_ns() - begun

    def in_threads(self, threads: int, body: Callable[[int], None]) -> None:
        """Runs body(0), body(1), ... in parallel and raises the first exception."""
        failures: list[BaseException] = []
        barrier = threading.Barrier(threads)

        def one(index: int) -> None:
            try:
                barrier.wait()
                body(index)
            except BaseException as error:
                failures.append(error)

        running = [
            threading.Thread(target=one, args=(n,), name=f"writer-{n}") for n in range(threads)
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        if failures:
            raise failures[0]

    def make_file(self, path: Path, size: int) -> int:
        """Writes a file and syncs it before the measured part. Its fsync is counted."""
        fd = self.open(path)
        block = pattern(1 << 20)
        for at in range(0, size, len(block)):
            self.write(fd, block[: min(len(block), size - at)], at)
        self.sync(fd)
        return fd


def checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def pattern(size: int, seed: int = 0) -> bytes:
    """Returns bytes that do not compress well. The same seed gives the same bytes."""
    block = bytes((i * 131 + i // 256 * 17 + seed * 29) % 251 for i in range(min(size, 4096)))
    return (block * (size // 4096 + 1))[:size]


def main(body: Callable[[Run], None], doc: str | None, **defaults: Value | tuple[str, ...]) -> None:
    """Reads `DIR [key=value ...]`, runs the body and prints the report.

    A default that is a tuple lists the allowed values; the first one is the default.
    """
    name = Path(sys.argv[0]).stem
    choices = {key: value for key, value in defaults.items() if isinstance(value, tuple)}
    options: dict[str, Value] = {
        key: value[0] if isinstance(value, tuple) else value for key, value in defaults.items()
    }
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        print(f"{(doc or '').strip()}\n\nUsage: {name}.py DIR [key=value ...]")
        for key, value in options.items():
            print(f"  {key}={'|'.join(choices[key]) if key in choices else value}")
        sys.exit(0 if words else 2)
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not equals or key not in options:
            sys.exit(
                f"{name}: unknown option {word!r}; the options are: {', '.join(options) or 'none'}"
            )
        if key in choices and value not in choices[key]:
            sys.exit(f"{name}: {key} must be one of {', '.join(choices[key])}")
        try:
            options[key] = int(value) if isinstance(options[key], int) else value
        except ValueError:
            sys.exit(f"{name}: {key} must be a number")
    directory = Path(words[0]).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    run = Run(directory, options)
    begun = time.monotonic_ns()
    body(run)
    total_ns = time.monotonic_ns() - begun
    truth: dict[str, object] = {
        "workload": name,
        "options": options,
        "pid": os.getpid(),
        "syncs": dict(sorted(run.syncs.items())),
        "requests": sum(run.syncs[kind] for kind in REQUEST_KINDS),
        "exact": run.exact,
        "errors": dict(run.errors),
        "files": run.files,
        "bytes": run.bytes,
        "wall_ms": round((run.wall_ns or total_ns) / 1e6, 3),
        "total_ms": round(total_ns / 1e6, 3),
    }
    print(json.dumps(truth | run.more), flush=True)
