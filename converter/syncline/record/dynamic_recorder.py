"""The route `dynamic-events`: probes on the functions of a stock kernel, recorded by the ring buffer."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from syncline.record import (
    dynamic_events,
    effects,
    file_filter,
    mounts,
    ring_buffer,
    seen_events,
)
from syncline.record.errors import RecordError
from syncline.record.file_paths import FILE, FilePaths
from syncline.record.kernel_facts import completion_symbols
from syncline.record.mounts import MountWatch
from syncline.record.probe_group import ProbeGroup
from syncline.record.processes import Tasks
from syncline.record.ring_buffer import RingBuffer
from syncline.record.thread_states import ThreadStates
from syncline.record.writers import FILE as WRITERS
from syncline.record.writers import Writers
from syncline.run_directory import Filter

# Interval at which new files, threads and mounts are looked for, and the same where nobody may be looking for days.
_LOOK_EVERY_S = 0.25
_LOOK_RARELY_S = 2.0
# The share of one CPU that it takes at most, as the time between two looks in times of one.
_PAUSE = 10
_LONG_PAUSE = 200
# The events that begin the sync of a file.
_WITH_FILE = ("fsync_enter", "range_enter")
# The event of each file that is written back.
_WRITTEN_BACK = "writepages"
# The event of a bio that reads. It names a file if the bio reads (REQ_OP_READ) one into page cache (S_IFREG).
_READ = "read"
_NAMES_FILE = "!(opf & 255) && mode & 32768"
_NO_FILTER = "0"
# How many events are looked at for probes without effect: at the end, and while recording.
_LOOK_AT = 200_000
_LOOK_AT_MEANWHILE = 5_000
# Interval at which tables are written that would be lost with the recorder.
_SECURE_EVERY_S = 10.0
# The last changes of the number of missed events.
_MISSED_KEPT = 1_000
# After the start, how long until the first look, and by what each later interval is longer.
_FIRST_LOOK_S = 1.0
_LATER = 2


class DynamicRecorder:
    """Defines the probes and records them into `trace.dat`, from `start` to `stop`."""

    def __init__(
        self,
        tracefs: Path,
        folder: Path,
        buffer_kb: int,
        tasks: Tasks,
        *,
        has_writes: bool = False,
        has_reads: bool = True,
        has_files: bool = False,
        wanted: Filter | None = None,
        overwrites: bool = False,
    ) -> None:
        """Defines the probes. If it `overwrites`, the newest events are kept until `save`, any number of times, instead of `stop`.

        With `has_writes`, also those of each write; with `has_reads`, those of bios that read; with `has_files`, those
        of operations on files, of which the kernel leaves out what `wanted` does not keep, where it can.

        Raises:
            RecordError: the kernel does not let it. Nothing is left.
        """
        self._folder = folder
        self._overwrites = overwrites
        # Held while files, writers and threads are looked at.
        self._looking = threading.Lock()
        # Events that probes had missed: (CLOCK_BOOTTIME, number), so that a capture counts only its own.
        self._missed_until: deque[tuple[int, int]] = deque([(0, 0)], _MISSED_KEPT)
        self._forgot_at = self._secure_at = time.monotonic()
        # Folios that were not counted until the last time that unused files were forgotten.
        self._uncounted_before = 0
        self._has_files = has_files
        self._wanted = wanted or Filter()
        # Whether the path that is wanted was mounted, or something below it.
        self._is_mounted_below = False
        self.group = ProbeGroup(
            tracefs, has_writes=has_writes, has_reads=has_reads, has_files=has_files
        )
        self.problems: list[str] = []
        self._mounts = MountWatch()
        self._paths: FilePaths | None = None
        self._writers: Writers | None = None
        self._threads: ThreadStates | None = None
        # By event without effect: how many are missing at least.
        self.never_seen: dict[str, int] = {}
        # Those before another function was probed.
        self._missing_before: dict[str, int] = {}
        self._check_at, self._check_after = 0.0, _FIRST_LOOK_S
        self._stop = threading.Event()
        self._look = threading.Thread(target=self._look_often, name="syncline-files", daemon=True)
        self.ring = RingBuffer(tracefs, folder, buffer_kb, tasks, overwrites=overwrites)
        # The buffer for operations on files.
        self._of_files = self.ring.main
        try:
            if has_files and self._wanted.pid is not None:
                of_process = file_filter.buffer_of_process(self.ring, self._wanted.pid, buffer_kb)
                self._of_files = of_process or self.ring.main
            events = self.group.define(self._mounts.types())
            self._enable(events)
            recorded = self.group.tracepoints.recorded(has_reads=has_reads)
            for event, condition in recorded:
                self.ring.main.keep_only(event, condition)
            tracepoints = [event for event, _ in recorded]
            tracepoints += self.group.tracepoints.of_writes if has_writes else ()
            self.ring.main.enable([*ring_buffer.CALL_EVENTS, *tracepoints])
            if not self.group.has_symbol_text:
                self.ring.symbols = completion_symbols()
            self._count_files()
            self._count_writers(tasks)
            self._record_threads(buffer_kb)
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Starts recording events."""
        self.ring.start()
        self._check_at = time.monotonic() + self._check_after
        self._look.start()

    def follow(self, pid: int) -> None:
        """Records when a process and its descendants run, also before their first sync."""
        if self._threads is not None:
            self._threads.follow({pid})

    def stop(self) -> ring_buffer.Counts:
        """Stops recording, and writes the recording and the paths.

        Raises:
            RecordError: they could not be written.
        """
        self._end_look()
        if self._paths is not None:
            self._paths.finish()
        if self._writers is not None:
            self._writers.finish()
        self.ring.missed = sum(event.missed for event in self.profile().values())
        self.ring.count_more_missed = self._count_more_missed
        counts = self.ring.stop()
        self._write_tables(self._folder)
        return counts

    def _write_tables(self, folder: Path, prefix: str = "") -> None:
        if self._paths is not None:
            self._paths.write(folder / f"{prefix}{FILE}")
        if self._writers is not None:
            files = self._paths.written_back if self._paths is not None else set()
            self._writers.write(folder / f"{prefix}{WRITERS}", files)

    def _secure(self) -> None:
        """Writes the tables that a killed recorder would take with it."""
        if time.monotonic() < self._secure_at:
            return
        self._secure_at = time.monotonic() + _SECURE_EVERY_S
        self._write_tables(self._folder, ".")
        for name in (FILE, WRITERS):
            with contextlib.suppress(FileNotFoundError):
                (self._folder / f".{name}").replace(self._folder / name)

    def save(self, folder: Path, from_ns: int) -> ring_buffer.Saved:
        """Writes what was recorded from a time on, and its paths, into a folder. Only if it overwrites.

        Raises:
            RecordError: it could not be written.
        """
        with self._looking:
            self._look_at_files()
            missed = sum(event.missed for event in self.profile().values())
            before = max((n for ts, n in self._missed_until if ts <= from_ns), default=0)
            self.ring.missed = missed - before
            self.ring.count_more_missed = self._count_more_missed
            saved = self.ring.save(folder, from_ns)
            self._write_tables(folder)
            self._forget()
        return saved

    def forget_unused(self, keep_s: float) -> None:
        """Forgets the files and threads of which nothing has happened for twice this time, so that memory does not grow for days."""
        if time.monotonic() - self._forgot_at > keep_s:
            with self._looking:
                self._look_at_files()
                self._forget()

    def _forget(self) -> None:
        self._forgot_at = time.monotonic()
        if self._paths is not None:
            self._paths.forget_unused()
        if self._writers is not None:
            self._uncounted_before = self._writers.dropped
            self._writers.forget_unused()
        if self._threads is not None:
            self._threads.forget_ended()

    def facts(self) -> dict[str, Any]:
        """Returns what the manifest says of the probes."""
        found = {"group": self.group.name, **self.group.report.as_json()}
        profile = self.profile()
        found["hits"] = {name: event.hits for name, event in profile.items()}
        found["missed"] = {name: event.missed for name, event in profile.items() if event.missed}
        if self._paths is not None:
            found["syncs_counted"] = self._paths.syncs
            found["syncs_not_counted"] = self._paths.dropped
            found["counts_emptied"] = self._paths.emptied
        if self._writers is not None:
            found["dirtied_not_counted"] = self._writers.dropped
            found["writers_emptied"] = self._writers.emptied
        return found | {"problems": self.problems}

    def profile(self) -> dict[str, dynamic_events.Hits]:
        """Returns the hits of the kprobes, by event."""
        return dynamic_events.profile(self.group.tracefs, self.group.name)

    @property
    def uncounted(self) -> int:
        """Folios that were made dirty, and that the histogram of writers had no room for."""
        return self._writers.dropped - self._uncounted_before if self._writers is not None else 0

    def only_file_of(self, tid: int) -> str | None:
        """Returns the path of the only file that a thread has synced, as far as it is known."""
        return self._paths.only_file_of(tid) if self._paths is not None else None

    def _count_more_missed(self) -> int:
        """Returns how many events are missing because a probe has no effect, or a histogram had no room."""
        self.never_seen = self._without_effect(_LOOK_AT)
        for event, count in self._missing_before.items():
            self.never_seen[event] = max(count, self.never_seen.get(event, 0))
        return sum(self.never_seen.values()) + self.uncounted

    def close(self) -> None:
        """Removes the probes and the tracing instances. Must be called in any case."""
        self._end_look()
        self._mounts.close()
        self.ring.close()
        for event in self.group.remove():
            self.problems.append(f"the event {event} is in use elsewhere, and was not removed")

    def _end_look(self) -> None:
        self._stop.set()
        if self._look.is_alive():
            self._look.join()

    def _enable(self, events: list[str]) -> None:
        of_files = [event for event in events if self.group.is_of_files(event)]
        others = [event for event in events if event not in of_files and not self.group.is_counted(event)]  # fmt: skip
        for event in others:
            self.ring.main.keep_only(event, self.group.filter_of(event))
        self._keep_wanted(of_files)
        for buffer, recorded in ((self.ring.main, others), (self._of_files, of_files)):
            enabled = set(buffer.events)
            buffer.enable(recorded)
            # On newer kernels (seen on 7.2), an fprobe that is added to an event has no effect until the event is enabled the next time.
            for event in self.group.added_to & enabled:
                buffer.instance.write(f"events/{event}/enable", "0")
                buffer.instance.write(f"events/{event}/enable", "1")
        self.group.added_to.clear()

    def _keep_wanted(self, of_files: list[str]) -> None:
        """Leaves out operations on files that are not wanted, as far as events say so."""
        mounted = mounts.own()
        for event in of_files:
            condition = self.group.filter_of(event)
            fields = self.group.fields_of(event)
            wanted = file_filter.narrowed(condition, self._wanted, fields, mounted)
            self._of_files.keep_only(event, wanted, condition or _NO_FILTER)

    def _keep_below_new_mounts(self) -> None:
        """Leaves out no path any more, once a file system is mounted where its files do not have the name by which the kernel keeps them."""
        path = self._wanted.path
        if not self._has_files or path is None or self._is_mounted_below:
            return
        self._is_mounted_below = file_filter.has_mount_below(mounts.own(), path)
        if self._is_mounted_below:
            events = [*filter(self.group.is_of_files, self._of_files.events)]
            self._keep_wanted(events)
            self.problems.append(
                f"operations on files that were mounted at {path} meanwhile: recorded only from {_now_s()} s on"
            )

    def _count_files(self) -> None:
        try:
            probed = self.group.report.probed
            events = [f"{self.group.name}/{event}" for event in _WITH_FILE if event in probed]
            others = [event for event in [self._written_back()] if event is not None]
            fields = self.group.report.missing_fields.get(_READ, {})
            is_read_named = _READ in probed and not fields.keys() & {"mode", "dev", "ino", "gen"}
            read = {f"{self.group.name}/{_READ}": _NAMES_FILE} if is_read_named else {}
            self._paths = FilePaths(
                self.ring.instance, events, others, read, has_all_mounts=self._has_files
            )
        except RecordError as error:
            self.problems.append(f"no paths but the last names of each: {error.message}")

    def _count_writers(self, tasks: Tasks) -> None:
        try:
            self._writers = Writers(self.ring.instance, self._written_back(), tasks)
        except RecordError as error:
            self.problems.append(f"not who made files dirty: {error.message}")

    def _written_back(self) -> str | None:
        is_probed = _WRITTEN_BACK in self.group.report.probed
        return f"{self.group.name}/{_WRITTEN_BACK}" if is_probed else None

    def _record_threads(self, buffer_kb: int) -> None:
        try:
            self._threads = ThreadStates(self.ring, self.group.tracepoints.of_threads, buffer_kb)
        except RecordError as error:
            self.problems.append(f"not when a thread waits for a CPU: {error.message}")

    def _look_often(self) -> None:
        files_at = 0.0
        every_s, pause = (
            (_LOOK_RARELY_S, _LONG_PAUSE) if self._overwrites else (_LOOK_EVERY_S, _PAUSE)
        )
        wait_s = every_s
        while not self._stop.wait(wait_s):
            looked_at = time.monotonic()
            try:
                with self._looking:
                    self._define_new()
                    if (began := time.monotonic()) >= files_at:
                        self._look_at_files()
                        # However many files there are.
                        files_at = began + pause * (time.monotonic() - began)
                    if self._threads is not None:
                        self._threads.look()
                    if self._overwrites:
                        self._note_missed()
                if self._overwrites:
                    # All of it together.
                    wait_s = max(every_s, pause * (time.monotonic() - looked_at))
                else:
                    self._replace_dead()
                    self._secure()
            except (OSError, ValueError, LookupError) as error:
                self.problems.append(
                    f"paths and new file systems were no longer looked for: {error}"
                )
                return

    def _note_missed(self) -> None:
        missed = sum(event.missed for event in self.profile().values())
        if missed != self._missed_until[-1][1]:
            self._missed_until.append((time.clock_gettime_ns(time.CLOCK_BOOTTIME), missed))

    def _look_at_files(self) -> None:
        if self._paths is not None:
            self._paths.poll()
            if self._threads is not None:
                self._threads.follow(self._paths.tids)
        if self._writers is not None:
            self._writers.poll()

    def _define_new(self) -> None:
        """Defines the probes of file systems that have been mounted since."""
        if not self._mounts.changed():
            return
        self._keep_below_new_mounts()
        before, gaps = self.group.functions_probed, self.group.report.gap_texts()
        try:
            self._enable(self.group.define(self._mounts.types()))
        except RecordError as error:
            self.problems.append(f"no probes for what was mounted meanwhile: {error.message}")
        if new := sorted(self.group.functions_probed - before):
            self.problems.append(
                f"{', '.join(new)}: recorded only from {_now_s()} s on, because no file system that"
                " calls them was mounted before"
            )
        self.problems += [text for text in self.group.report.gap_texts() if text not in gaps]

    def _without_effect(self, look_at: int, until_ns: int | None = None) -> dict[str, int]:
        seen = seen_events.look(self.ring, look_at, until_ns)
        probed = self.group.report.probed
        return effects.without_effect(self.group.probes, probed, seen, self.profile())

    def _replace_dead(self) -> None:
        """Probes other functions where those that are probed have no effect. Looks ever more rarely."""
        if time.monotonic() < self._check_at:
            return
        self._check_after *= _LATER
        self._check_at = time.monotonic() + self._check_after
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        # Otherwise another CPU might still have the event that seems to be missing.
        if not self.ring.flush():
            return
        missing = self._without_effect(_LOOK_AT_MEANWHILE, now_ns)
        for event in missing.keys() - self._missing_before.keys():
            self._missing_before[event] = missing[event]
            before = self.group.functions_of(event)
            if new := self.group.define_others(event):
                self._enable([])
                self.problems.append(
                    f"{event}: no effect by {', '.join(before)}; by {', '.join(new)} from {now_ns / 1e9:.3f} s on"
                )


def _now_s() -> str:
    return f"{time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e9:.3f}"
