"""A process that writes another file while syncs are measured, and reports what it wrote and when."""

from __future__ import annotations

import json
import mmap
import os
import signal
import threading
import time
from pathlib import Path

from workload import LIBC, Run, pattern

PR_SET_NAME = 15
NAME = "neighbour"
CGROUP = Path("/sys/fs/cgroup") / f"{NAME}.slice"


class Neighbour:
    """Writes blocks one after another, again from the start at the end of the file.

    `kind` is `direct` (O_DIRECT) or `buffered` (left to the flusher threads). With a rate of 0, each of the threads
    writes as fast as the device takes it. Its threads have the name `neighbour`, and as root a control group of this name.
    """

    def __init__(self, run: Run) -> None:
        self.path = run.dir.parent / f"{run.dir.name}.neighbour"
        self.kind = run.text("neighbour")
        self.threads, self.block = run.number("writers"), run.number("block")
        self.size = run.number("mb") << 20
        self.bytes_per_second = run.number("kb_per_second") << 10
        self.child = 0
        self.report = -1

    def prepare(self) -> None:
        """Creates the file, so that writing it changes no metadata."""
        if self.kind == "none":
            return
        with self.path.open("wb") as file:
            for _ in range(self.size >> 20):
                file.write(pattern(1 << 20, seed=3))
            os.fsync(file.fileno())

    def start(self) -> None:
        """Starts the process, and waits until each of its threads has written once."""
        if self.kind == "none":
            return
        self.report, writable = os.pipe()
        ready, started = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            try:
                self._write(writable, started)
            finally:
                os._exit(0)
        os.close(writable)
        os.close(started)
        if os.read(ready, 1) != b"1":
            raise SystemExit("the neighbour could not write")
        os.close(ready)

    def stop(self) -> dict[str, object]:
        """Ends the process and returns its report."""
        os.kill(self.child, signal.SIGTERM)
        with os.fdopen(self.report) as pipe:
            text = pipe.read()
        os.waitpid(self.child, 0)
        self.child = 0
        report: dict[str, object] = json.loads(text)
        return report

    def _write(self, report: int, started: int) -> None:
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        LIBC.prctl(PR_SET_NAME, NAME.encode(), 0, 0, 0)
        in_cgroup = enter(CGROUP)
        writes: list[tuple[int, int]] = []
        barrier = threading.Barrier(self.threads + 1)
        tids: list[int] = []
        threads = [
            threading.Thread(target=self._blocks, args=(k, stop, barrier, tids, writes))
            for k in range(self.threads)
        ]
        begun = time.monotonic_ns()
        for thread in threads:
            thread.start()
        barrier.wait()
        os.write(started, b"1")
        while not stop.wait(1):
            pass
        for thread in threads:
            thread.join()
        writes.sort()
        text = json.dumps(
            {
                "pid": os.getpid(),
                "comm": NAME,
                "cgroup": f"/{CGROUP.name}" if in_cgroup else None,
                "tids": tids,
                "path": str(self.path),
                "kind": self.kind,
                "start_ns": begun,
                "end_ns": time.monotonic_ns(),
                "bytes": len(writes) * self.block,
                "block": self.block,
                "writes_start_dur_ns": writes,
            }
        )
        with os.fdopen(report, "w") as pipe:
            pipe.write(text)

    def _blocks(
        self,
        number: int,
        stop: threading.Event,
        barrier: threading.Barrier,
        tids: list[int],
        writes: list[tuple[int, int]],
    ) -> None:
        LIBC.prctl(PR_SET_NAME, NAME.encode(), 0, 0, 0)
        tids.append(threading.get_native_id())
        fd = os.open(self.path, os.O_WRONLY | (os.O_DIRECT if self.kind == "direct" else 0))
        # Direct I/O needs memory that begins at a page.
        memory = mmap.mmap(-1, self.block)
        memory.write(pattern(self.block, seed=4))
        blocks = self.size // self.block
        begun, written = time.monotonic(), 0
        at = number
        while not stop.is_set():
            start = time.monotonic_ns()
            os.pwritev(fd, [memory], at % blocks * self.block)
            writes.append((start, time.monotonic_ns() - start))
            if not written:
                barrier.wait()
            written += self.block
            at += self.threads
            if self.bytes_per_second:
                due = begun + written * self.threads / self.bytes_per_second
                stop.wait(max(0.0, due - time.monotonic()))
        os.close(fd)


def enter(cgroup: Path) -> bool:
    """Moves this process to a control group. Returns false if that is not possible."""
    try:
        cgroup.mkdir(exist_ok=True)
        (cgroup / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        return False
    return True
