"""The default route: the kernel's ring buffer, copied page by page, then put into a trace.dat.

Pages go from the kernel to a file as they are; nothing is parsed while it is recorded.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import re
import threading
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from syncline.record import trace_dat
from syncline.record.errors import RecordError
from syncline.record.machine import Tasks
from syncline.record.tracefs import Instance

CLOCK = "boot"
SYNC_CALLS = ("fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range")
_CALLS = [f"syscalls/sys_{way}_{call}" for call in SYNC_CALLS for way in ("enter", "exit")]
# What a patched kernel says of a sync, and what the journal and the queue do meanwhile.
_WRITEBACK = "wb_tracer"
_BESIDE = [
    "jbd2/jbd2_start_commit",
    "jbd2/jbd2_commit_locking",
    "jbd2/jbd2_commit_flushing",
    "jbd2/jbd2_commit_logging",
    "jbd2/jbd2_end_commit",
    "block/block_rq_insert",
    "block/block_rq_issue",
    "block/block_rq_complete",
]
# Full pages are fetched so often; a page that is not full waits for the end.
_EVERY_S = 0.02
_NAMES_EVERY_S = 0.25
_SPLICE_BYTES = 1 << 18


@dataclass
class Recorded:
    """What the kernel says of a recording."""

    events: list[str]
    entries: int = 0
    lost: int = 0
    cpus: dict[int, dict[str, int]] = field(default_factory=dict)


def is_patched(tracefs: Path) -> bool:
    """Whether the kernel has the tracepoints of kernel-patch/."""
    return (tracefs / "events" / _WRITEBACK / "sync_start").is_dir()


class RingBuffer:
    """Records into `trace.dat` of a folder, between `start` and `stop`."""

    def __init__(self, tracefs: Path, folder: Path, buffer_kb: int, tasks: Tasks) -> None:
        self.folder = folder
        self._tasks = tasks
        self.instance = Instance.create(tracefs, clock=CLOCK, buffer_kb=buffer_kb)
        try:
            # Kernels without it tell no processes; all else is as good.
            with contextlib.suppress(RecordError):
                self.instance.write("options/record-tgid", "1")
            writeback = sorted(
                f"{_WRITEBACK}/{path.name}"
                for path in (tracefs / "events" / _WRITEBACK).glob("*")
                if path.is_dir()
            )
            self.events = self.instance.enable([*writeback, *_CALLS, *_BESIDE])
            self._readers = [
                _Reader(path, folder / f".{path.parent.name}.pages")
                for path in sorted(self.instance.folder.glob("per_cpu/cpu*/trace_pipe_raw"))
            ]
        except BaseException:
            self.instance.remove()
            raise
        self.comms: dict[int, str] = {}
        self._stop = threading.Event()
        self._failed: OSError | None = None
        self._thread = threading.Thread(target=self._copy, name="syncline-pages", daemon=True)

    def start(self) -> None:
        """Events are recorded from here on."""
        self.instance.write("tracing_on", "1")
        self._thread.start()

    @property
    def failed(self) -> OSError | None:
        """Why copying has ended early, if it has: a full disk, say."""
        return self._failed

    def stop(self) -> Recorded:
        """Ends the recording, fetches what is left and writes the file.

        Raises:
            RecordError: the pages could not be written.
        """
        self.instance.write("tracing_on", "0")
        self._stop.set()
        self._thread.join()
        if self._failed is not None:
            raise RecordError(
                f"the recording could not be written: {self._failed.strerror}",
                f"make room where {self.folder} is, or record to another disk with -o",
            )
        for reader in self._readers:
            reader.drain()
        self._look_at_names()
        stats = self.instance.stats()
        recorded = Recorded(self.events, cpus=stats)
        for cpu in stats.values():
            recorded.entries += cpu.get("read events", 0) + cpu.get("entries", 0)
            recorded.lost += (
                cpu.get("overrun", 0) + cpu.get("commit overrun", 0) + cpu.get("dropped events", 0)
            )
        self._write(stats)
        return recorded

    def close(self) -> None:
        """Undoes what was set up; to be called whatever happened."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        for reader in self._readers:
            reader.close()
        self.instance.remove()

    def _copy(self) -> None:
        waited = 0.0
        try:
            while not self._stop.wait(_EVERY_S):
                for reader in self._readers:
                    reader.fetch()
                waited += _EVERY_S
                if waited >= _NAMES_EVERY_S:
                    waited = 0.0
                    self._look_at_names()
        except OSError as error:
            self._failed = error

    def _look_at_names(self) -> None:
        """The kernel remembers the names of few threads, so they are asked for again and again."""
        with contextlib.suppress(OSError):
            text = (self.instance.tracefs / "saved_cmdlines").read_bytes().decode(errors="replace")
            for line in text.splitlines():
                pid, _, comm = line.partition(" ")
                if pid.isdigit() and comm and comm != "<...>":
                    self.comms[int(pid)] = comm
        self._tasks.look_at_saved(self.instance.tracefs)

    def _write(self, stats: dict[int, dict[str, int]]) -> None:
        events = self.instance.folder / "events"
        header_page = (self.instance.tracefs / "events" / "header_page").read_text()
        data = re.search(r"field: char data;\s*offset:(\d+);\s*size:(\d+);", header_page)
        page_bytes = int(data[1]) + int(data[2]) if data else os.sysconf("SC_PAGE_SIZE")
        described = [path.parent.relative_to(events) for path in events.glob("ftrace/*/format")]
        trace_dat.write(
            self.folder / "trace.dat",
            header_page=header_page,
            header_event=(self.instance.tracefs / "events" / "header_event").read_text(),
            ftrace_formats=[(events / name / "format").read_text() for name in described],
            formats=self.instance.formats(self.events),
            comms=self.comms,
            clock=(self.instance.folder / "trace_clock").read_text(),
            uname=" ".join(platform.uname()[i] for i in (0, 1, 2, 4)),
            version=f"syncline {metadata.version('syncline')}",
            stats=[
                "\n".join([f"CPU: {cpu}", *(f"{key}: {value}" for key, value in counts.items())])
                for cpu, counts in stats.items()
            ],
            page_bytes=page_bytes,
            pages=[reader.file for reader in self._readers],
        )


class _Reader:
    """Copies one CPU's pages to a file."""

    def __init__(self, source: Path, file: Path) -> None:
        self.file = file
        self._source = os.open(source, os.O_RDONLY | os.O_NONBLOCK)
        self._out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._pipe = os.pipe()

    def fetch(self) -> None:
        """Takes all full pages."""
        while True:
            try:
                taken = os.splice(self._source, self._pipe[1], _SPLICE_BYTES)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EINTR):
                    return
                raise
            if taken == 0:
                return
            while taken:
                taken -= os.splice(self._pipe[0], self._out, taken)

    def drain(self) -> None:
        """Takes what is left, full or not; for when tracing is off."""
        self.fetch()
        while True:
            try:
                page = os.read(self._source, 1 << 16)
            except BlockingIOError:
                return
            if not page:
                return
            os.write(self._out, page)

    def close(self) -> None:
        for fd in (self._source, self._out, *self._pipe):
            with contextlib.suppress(OSError):
                os.close(fd)
        self.file.unlink(missing_ok=True)
