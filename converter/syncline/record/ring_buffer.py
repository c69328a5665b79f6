"""The default route: the ring buffer of the kernel, copied page by page, then written as trace.dat.

Pages are copied to files unchanged. Nothing is parsed during the recording.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import re
import resource
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from syncline.record import ring_pages, salvage, trace_dat
from syncline.record.errors import RecordError
from syncline.record.processes import Tasks
from syncline.record.splice import splice
from syncline.record.sync_calls import SYNC_CALLS
from syncline.record.tracefs import Instance, owner
from syncline.run_directory import LEFT, TASKS

CLOCK = "boot"
CALL_EVENTS = [f"syscalls/sys_{end}_{call}" for call in SYNC_CALLS for end in ("enter", "exit")]
# Interval at which full pages are copied. A page that is not full is copied at the end.
_EVERY_S = 0.02
_FLUSH_WITHIN_S = 2.0
# Interval at which thread names are recorded.
_NAMES_EVERY_S = 0.25
# Interval at which all is written that would be lost with the recorder.
_SECURE_EVERY_S = 2.0
# Names of threads that are kept for days.
_NAMES_KEPT = 50_000
# The same where nobody may be looking for days.
_NAMES_RARELY_S = 5.0
_SPLICE_BYTES = 1 << 18
# Counters of per_cpu/cpu*/stats that can be added up over buffers, and those of lost events.
_LOSSES = ("overrun", "commit overrun", "dropped events")
_COUNTERS = (*_LOSSES, "entries", "read events", "bytes")


@dataclass
class Counts:
    """The events of a recording, and how many the kernel counted as recorded and as lost.

    `missed` are those of the lost events that a probe missed. The others found no room.
    """

    events: list[str]
    entries: int = 0
    lost: int = 0
    missed: int = 0
    cpus: dict[int, dict[str, int]] = field(default_factory=dict)


class Buffer:
    """One tracing instance, whose pages are copied to files."""

    def __init__(
        self, tracefs: Path, folder: Path, buffer_kb: int, name: str = "", is_written: bool = True
    ) -> None:
        """Creates it. Without a reader, new events overwrite the oldest ones."""
        self.name = name
        self.buffer_kb = buffer_kb
        # Whether it is a part of trace.dat.
        self.is_written = is_written
        self.instance = Instance.create(tracefs, clock=CLOCK, buffer_kb=buffer_kb, name=name)
        self.events: list[str] = []
        self._readers: list[_Reader] = []
        prefix = f"{name}-" if name else ""
        try:
            for path in sorted(self.instance.folder.glob("per_cpu/cpu*/trace_pipe_raw"), key=_cpu):
                file = folder / f".{prefix}{path.parent.name}.pages"
                self._readers.append(_Reader(path, file, _cpu(path)))
        except BaseException:
            self.close()
            raise

    def enable(self, events: list[str]) -> None:
        """Enables those of the events (`system/name`) that this kernel has."""
        self.events += self.instance.enable(events)

    def keep_only(self, event: str, *conditions: str) -> None:
        """Records only the events that meet the first condition that the kernel accepts. Else they are recorded more often than needed."""
        for condition in filter(None, conditions):
            with contextlib.suppress(RecordError):
                self.instance.set_filter(event, condition)
                return

    def fetch(self) -> None:
        """Copies all full pages."""
        for reader in self._readers:
            reader.fetch()

    def flush(self) -> None:
        """Copies all events that are there now."""
        for reader in self._readers:
            reader.flush()

    def drain(self) -> None:
        """Copies the remaining pages, after tracing has stopped."""
        for reader in self._readers:
            reader.drain()

    def complete_from(self) -> int:
        """Returns the time from which no event is missing because a newer one has overwritten it; 0 if none is. After `drain`."""
        stats = self.instance.stats()
        overwritten = [r for r in self._readers if stats.get(r.cpu, {}).get("overrun", 0)]
        return max((ring_pages.first_time(reader.file) for reader in overwritten), default=0)

    def forget(self) -> None:
        """Empties the buffer of the kernel, and sets its counters to 0. Not while it records."""
        self.instance.write("trace", "")

    def empty_files(self) -> None:
        """Empties the files."""
        for reader in self._readers:
            reader.empty()

    @property
    def pages(self) -> list[Path]:
        """A file for each CPU, in the order of the CPUs."""
        return [reader.file for reader in self._readers]

    def close(self) -> None:
        """Removes the tracing instance and temporary files."""
        for reader in self._readers:
            reader.close()
        self.instance.remove()


def _cpu(file: Path) -> int:
    return int(file.parent.name.removeprefix("cpu"))


class Sending(Protocol):
    """Sends the pages of a recording elsewhere while it is made."""

    def has_room(self, buffer: Buffer) -> bool:
        """Returns whether more pages of a buffer may be copied now. Else they stay in the kernel, which counts what it loses."""

    def send_pages(self) -> None:
        """Returns when all pages are sent."""


@dataclass
class Saved:
    """What was saved of buffers that overwrite themselves."""

    counts: Counts
    # CLOCK_BOOTTIME from which on all that was recorded is there.
    known_from_ns: int


class RingBuffer:
    """Records into `trace.dat` in a folder, from `start` to `stop`."""

    def __init__(
        self,
        tracefs: Path,
        folder: Path,
        buffer_kb: int,
        tasks: Tasks,
        *,
        overwrites: bool = False,
    ) -> None:
        """Creates the main buffer, in which no event is enabled yet.

        If it `overwrites`, nothing is copied until `save`: the kernel overwrites the oldest events with new ones.
        """
        self.folder = folder
        self._overwrites = overwrites
        # Each CPU takes four files of each buffer.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        # Held while tracing is turned off and on again.
        self._switching = threading.Lock()
        self._secured_events: list[str] = []
        self._has_state = False
        # CLOCK_BOOTTIME since which the buffers have all events, apart from those that were overwritten.
        self.began_ns = 0
        # The same before the last `save`.
        self.began_before_ns = 0
        self.main = Buffer(tracefs, folder, buffer_kb)
        self.buffers = [self.main]
        self.instance = self.main.instance
        # Where the pages go instead of into trace.dat; None if they do not leave this machine.
        self.sending: Sending | None = None
        # Events that probes missed. The kernel counts them apart from the buffer.
        self.missed = 0
        # Called when all pages are there: more events that were not recorded.
        self.count_more_missed: Callable[[], int] = lambda: 0
        # Lines of /proc/kallsyms for addresses in events.
        self.symbols = ""
        self._tasks = tasks
        # Without this option, processes of threads are not recorded. All else works.
        with contextlib.suppress(RecordError):
            self.instance.write("options/record-tgid", "1")
        self.comms: dict[int, str] = {}
        self._stop = threading.Event()
        self._flush_wanted = threading.Event()
        self._flushed = threading.Event()
        # Why copying or tracing has stopped early, and the time of CLOCK_BOOTTIME from which nothing is known.
        self.failed: str | None = None
        self.known_until: int | None = None
        self._seen_on_ns = 0
        self._thread = threading.Thread(target=self._copy, name="syncline-pages", daemon=True)

    def add(self, name: str, buffer_kb: int, is_written: bool = True) -> Buffer:
        """Adds a buffer of its own for events that need other settings. Not after `start`."""
        buffer = Buffer(self.instance.tracefs, self.folder, buffer_kb, name, is_written)
        self.buffers.append(buffer)
        return buffer

    def remove(self, buffer: Buffer) -> None:
        """Removes a buffer that was added. Not after `start`."""
        self.buffers.remove(buffer)
        buffer.close()

    @property
    def _written(self) -> list[Buffer]:
        return [buffer for buffer in self.buffers if buffer.is_written]

    def start(self) -> None:
        """Starts recording events."""
        self._seen_on_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self._turn_on()
        self._thread.start()

    def bytes_per_s(self) -> float:
        """Returns how much the CPU with most events records, of the buffer that would be full first, as if all had the size of the main one."""
        seconds = (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self.began_ns) / 1e9
        found = 0.0
        for buffer in self.buffers:
            share = self.main.buffer_kb / buffer.buffer_kb
            for numbers in buffer.instance.stats().values():
                # Those that were overwritten had the size of the others.
                entries = numbers.get("entries", 0)
                written = numbers.get("bytes", 0) * (
                    1 + numbers.get("overrun", 0) / max(entries, 1)
                )
                found = max(found, share * written / max(seconds, 0.001))
        return found

    def _turn_on(self) -> None:
        for buffer in self.buffers:
            buffer.instance.write("tracing_on", "1")
        self.began_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def save(self, folder: Path, from_ns: int) -> Saved:
        """Writes what the buffers hold, from a time on if they go back so far, and begins anew. Only if it overwrites.

        Meanwhile nothing is recorded: about as long as copying the buffers takes.

        Raises:
            RecordError: it could not be written.
        """
        self._save_names()
        with self._switching:
            saved = self._save(folder, from_ns)
        self._tasks.scan_saved_tgids(self.instance.tracefs)
        return saved

    def _save(self, folder: Path, from_ns: int) -> Saved:
        # Another program may have turned tracing off, which would be a gap.
        self._check_tracing()
        for buffer in self.buffers:
            buffer.instance.write("tracing_on", "0")
        try:
            for buffer in self.buffers:
                buffer.drain()
            known_from = max(from_ns, self.began_ns, *(b.complete_from() for b in self.buffers))
            self.began_before_ns = self.began_ns
            counted = [buffer.instance.stats() for buffer in self._written]
        finally:
            for buffer in self.buffers:
                with contextlib.suppress(RecordError):
                    buffer.forget()
            if self.failed is None:
                self._turn_on()
        try:
            # Events that were overwritten are no loss.
            for buffer in self.buffers:
                for file in buffer.pages:
                    ring_pages.clear_lost(file)
                    ring_pages.remove_before(file, known_from, self.page_bytes)
            counts, stats = self._count(counted)
            self._write(folder, stats, counts.events)
        except OSError as error:
            raise RecordError(
                f"the capture could not be written: {(error.strerror or str(error)).lower()}",
                f"free space on the disk of {folder}, or name another disk with -o",
            ) from None
        return Saved(counts, known_from)

    def forget_pages(self) -> None:
        """Empties the files of what was saved."""
        for buffer in self.buffers:
            buffer.empty_files()

    def flush(self) -> bool:
        """Waits until all events of the main buffer that are there now are in its files. Returns whether they are."""
        self._flushed.clear()
        self._flush_wanted.set()
        return self._flushed.wait(_FLUSH_WITHIN_S)

    @property
    def page_bytes(self) -> int:
        """The size of a page of the buffer."""
        header_page = (self.instance.tracefs / "events" / "header_page").read_text()
        data = re.search(r"field: char data;\s*offset:(\d+);\s*size:(\d+);", header_page)
        return int(data[1]) + int(data[2]) if data else os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> Counts:
        """Stops recording, copies the remaining pages and writes the file.

        Raises:
            RecordError: the pages could not be written.
        """
        self._check_tracing()
        self._stop.set()
        self._thread.join()
        try:
            for buffer in self.buffers:
                buffer.instance.write("tracing_on", "0")
            return self._finish()
        except OSError as error:
            raise RecordError(
                f"the recording could not be written: {(error.strerror or str(error)).lower()}",
                f"free space on the disk of {self.folder}, or record to another disk with -o",
            ) from None

    def _finish(self) -> Counts:
        for buffer in self.buffers:
            buffer.drain()
        self._save_names()
        counts, stats = self._count()
        if self.sending is not None:
            self._write_facts(counts.events)
            self._write_state(time.clock_gettime_ns(time.CLOCK_BOOTTIME), stats)
            self.sending.send_pages()
            return counts
        self._write(self.folder, stats, counts.events)
        for name in (LEFT, salvage.STATE):
            (self.folder / name).unlink(missing_ok=True)
        return counts

    def _count(
        self, counted: list[dict[int, dict[str, int]]] | None = None
    ) -> tuple[Counts, dict[int, dict[str, int]]]:
        """Returns what the kernel has counted of the copied events, and its counters of each CPU: those of now, or `counted` before."""
        missed = self.missed + self.count_more_missed()
        stats, *others = counted or [buffer.instance.stats() for buffer in self._written]
        for other in others:
            for cpu, numbers in other.items():
                mine = stats.setdefault(cpu, {})
                for key in _COUNTERS:
                    mine[key] = mine.get(key, 0) + numbers.get(key, 0)
        if self._overwrites:
            # What was overwritten is no loss: the recording begins later.
            for numbers in stats.values():
                numbers["overrun"] = 0
        if missed and stats:
            first = stats[min(stats)]
            first["dropped events"] = first.get("dropped events", 0) + missed
        events = [event for buffer in self._written for event in buffer.events]
        counts = Counts(list(dict.fromkeys(events)), missed=missed, cpus=stats)
        for numbers in stats.values():
            counts.entries += numbers.get("read events", 0) + numbers.get("entries", 0)
            counts.lost += sum(numbers.get(key, 0) for key in _LOSSES)
        return counts, stats

    def close(self) -> None:
        """Removes the tracing instances and temporary files. Must be called in any case."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        for buffer in self.buffers:
            buffer.close()

    def _copy(self) -> None:
        waited, secure_at = 0.0, 0.0
        every_s = _NAMES_RARELY_S if self._overwrites else _EVERY_S
        try:
            while not self._stop.wait(every_s):
                for buffer in () if self._overwrites else self.buffers:
                    if self.sending is None or self.sending.has_room(buffer):
                        buffer.fetch()
                if self._flush_wanted.is_set():
                    self._flush_wanted.clear()
                    self.main.flush()
                    self._flushed.set()
                waited += every_s
                if waited >= _NAMES_EVERY_S:
                    waited = 0.0
                    self._save_names()
                    with self._switching:
                        self._check_tracing()
                if not self._overwrites and (now := time.monotonic()) >= secure_at:
                    # Another thread may change what is written. The next time is soon.
                    with contextlib.suppress(RuntimeError):
                        self._secure()
                    secure_at = now + _SECURE_EVERY_S
        except OSError as error:
            self._fail((error.strerror or str(error)).lower())
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}")

    def _check_tracing(self) -> None:
        """Notices that another program has turned tracing off, or has removed an instance."""
        if self.failed is not None:
            return
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        for buffer in self.buffers:
            try:
                is_on = (buffer.instance.folder / "tracing_on").read_text().strip() == "1"
            except OSError as error:
                self._fail(
                    f"{buffer.instance.folder.name}: {(error.strerror or '').lower()}",
                    self._seen_on_ns,
                )
                return
            if not is_on:
                self._fail("another program has turned tracing off", self._seen_on_ns)
                return
        self._seen_on_ns = now_ns

    def _fail(self, reason: str, known_until: int | None = None) -> None:
        """Ends tracing at once, so that what is in the buffers until now can still be written."""
        self.known_until = known_until or time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        for buffer in self.buffers:
            with contextlib.suppress(RecordError):
                buffer.instance.write("tracing_on", "0")
        self.failed = reason

    def _save_names(self) -> None:
        """Records thread names, repeatedly, because the kernel saves only a limited number."""
        with contextlib.suppress(OSError):
            text = (self.instance.tracefs / "saved_cmdlines").read_bytes().decode(errors="replace")
            for line in text.splitlines():
                pid, _, comm = line.partition(" ")
                if pid.isdigit() and comm and comm != "<...>":
                    # The newest names are the last ones.
                    self.comms.pop(int(pid), None)
                    self.comms[int(pid)] = comm
        if not self._overwrites:
            self._tasks.scan_saved_tgids(self.instance.tracefs)
            return
        # The kernel's table of processes has a line for each thread that there ever was, so it is read only with a capture.
        for tid in [*self.comms][:-_NAMES_KEPT]:
            self.comms.pop(tid, None)

    def _write(self, folder: Path, stats: dict[int, dict[str, int]], recorded: list[str]) -> None:
        trace_dat.write(
            folder / "trace.dat",
            **self._facts(recorded),
            comms=self.comms,
            stats=trace_dat.stats_texts(stats),
            pages=self.main.pages,
            buffers={buffer.name: buffer.pages for buffer in self._written[1:]},
        )

    def _facts(self, recorded: list[str]) -> dict[str, Any]:
        """Returns what trace.dat says of the kernel and of the recorded events."""
        events = self.instance.folder / "events"
        ftrace_events = [path.parent.relative_to(events) for path in events.glob("ftrace/*/format")]
        return {
            "header_page": (self.instance.tracefs / "events" / "header_page").read_text(),
            "header_event": (self.instance.tracefs / "events" / "header_event").read_text(),
            "ftrace_formats": [(events / name / "format").read_text() for name in ftrace_events],
            "formats": self.instance.formats(recorded),
            "clock": (self.instance.folder / "trace_clock").read_text(),
            "uname": " ".join(platform.uname()[i] for i in (0, 1, 2, 4)),
            "version": f"syncline {metadata.version('syncline')}",
            "page_bytes": self.page_bytes,
            "symbols": self.symbols,
        }

    def _secure(self) -> None:
        """Writes all that a killed recorder would take with it: the events until now, and what is needed to read them."""
        if self.sending is not None and not self.sending.has_room(self.main):
            return
        known_until_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        for buffer in self._written:
            buffer.flush()
        events = list(dict.fromkeys(event for buffer in self._written for event in buffer.events))
        if events != self._secured_events:
            self._write_facts(events)
            self._secured_events = events
        self._write_state(known_until_ns, self.main.instance.stats())
        self._tasks.write(self.folder / TASKS, self.comms)

    def _write_facts(self, events: list[str]) -> None:
        names = {buffer.name: [file.name for file in buffer.pages] for buffer in self._written}
        facts = {"owner": owner(), "events": events, "buffers": names}
        text = json.dumps(facts | {"trace_dat": self._facts(events)})
        # Somebody may be reading it.
        part = self.folder / f"{LEFT}.part"
        part.write_text(text)
        part.replace(self.folder / LEFT)

    def _write_state(self, known_until_ns: int, stats: dict[int, dict[str, int]]) -> None:
        counts = {str(cpu): numbers for cpu, numbers in stats.items()}
        state = {"known_until_ns": known_until_ns, "comms": self.comms, "stats": counts}
        # In place, because a new file each time would write metadata of the disk that may be measured. The first line is whole.
        with (self.folder / salvage.STATE).open("r+" if self._has_state else "w") as out:
            out.write(json.dumps(state) + "\n")
        self._has_state = True


class _Reader:
    """Copies the pages of one CPU to a file."""

    def __init__(self, source: Path, file: Path, cpu: int = 0) -> None:
        self.file = file
        self.cpu = cpu
        self._source = os.open(source, os.O_RDONLY | os.O_NONBLOCK)
        self._out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._pipe = os.pipe()
        # The data that could not be written: bytes in the pipe, and the page after them.
        self._taken = 0
        self._page = b""

    def fetch(self) -> None:
        """Copies all full pages."""
        while True:
            while self._taken:
                self._taken -= splice(self._pipe[0], self._out, self._taken)
            self._write_page()
            try:
                taken = splice(self._source, self._pipe[1], _SPLICE_BYTES)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EINTR):
                    return
                raise
            if taken == 0:
                return
            self._taken = taken

    def flush(self) -> None:
        """Copies the full pages and what is in the one that is being filled."""
        self.fetch()
        with contextlib.suppress(BlockingIOError):
            self._page = os.read(self._source, 1 << 16)
            self._write_page()

    def drain(self) -> None:
        """Copies the remaining pages, full or not, after tracing has stopped."""
        self.fetch()
        while True:
            try:
                self._page = os.read(self._source, 1 << 16)
            except BlockingIOError:
                return
            if not self._page:
                return
            self._write_page()

    def empty(self) -> None:
        """Removes what was copied."""
        self._page = b""
        if self._taken:
            for fd in self._pipe:
                os.close(fd)
            self._pipe, self._taken = os.pipe(), 0
        # Another file may have its name.
        out = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.close(self._out)
        self._out = out

    def _write_page(self) -> None:
        while self._page:
            self._page = self._page[os.write(self._out, self._page) :]

    def close(self) -> None:
        for fd in (self._source, self._out, *self._pipe):
            with contextlib.suppress(OSError):
                os.close(fd)
        self.file.unlink(missing_ok=True)
