"""Says that a sync was slow, from a tracing instance of its own that holds nothing else.

The kernel compares: a histogram keeps when each thread has entered a sync call, and at its exit makes an event of the difference, of which a
filter lets only the long ones through. So nothing wakes up until one was slow. A kernel without such histograms records the entries and exits
of the calls instead, and they are compared here.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from syncline.record.errors import RecordError
from syncline.record.sync_calls import SYNC_CALLS
from syncline.record.tracefs import Instance, append, dead_instances, is_running, owner
from syncline.run_directory import Filter

_NAMES = ("slow", "live")
_DEFINED = re.compile(rf"^(syncline_(?:{'|'.join(_NAMES)})_(\d+)_(\d+))\b", re.MULTILINE)
_FILE = "synthetic_events"
# Threads that a histogram holds. It is emptied before it is full.
_SIZE = 1 << 14
_BUFFER_KB = 256
# `comm-tid [cpu] flags time: event: text`
_LINE = re.compile(r"^ *(.{1,16}?)-(\d+) +\[\d+\] \S+ +(\d+)\.(\d{6}): (.*)$")
_SLOW = re.compile(r"\blat=(\d+)\b")
_ENTRY, _EXIT = re.compile(r"^sys_(\w+)\("), re.compile(r"^sys_(\w+) -> ")
_US = 1_000
_UNKNOWN = "<...>"


@dataclass(frozen=True)
class Slow:
    """A sync call that took longer than the limit."""

    # CLOCK_BOOTTIME, to a microsecond.
    end_ns: int
    dur_ns: int
    tid: int
    comm: str

    @property
    def text(self) -> str:
        return f"a sync of {self.dur_ns / 1e6:,.1f} ms by {self.comm} ({self.tid})"


class SlowSyncs:
    """Watches the sync calls, from its creation to `close`."""

    def __init__(
        self, tracefs: Path, slower_than_ns: int, wanted: Filter, name: str = "slow"
    ) -> None:
        """Begins to watch those of all threads, or those of the thread's name and the process of a filter.

        `name` distinguishes those of one process, and is one of `_NAMES`.

        Raises:
            RecordError: the kernel does not let it. Nothing is left.
        """
        self._limit_ns = slower_than_ns
        self._comm = wanted.comm
        pid, start = owner()
        self._event = f"syncline_{name}_{pid}_{start}"
        self._tracefs = tracefs
        # By thread, when its call began: only without histograms.
        self._entered: dict[int, int] = {}
        self._rest = b""
        self._is_defined = False
        self._instance = Instance.create(tracefs, clock="boot", buffer_kb=_BUFFER_KB, name=name)
        self.fd = -1
        try:
            if wanted.pid is not None:
                self._instance.write("options/event-fork", "1")
                self._instance.set_threads(_threads(wanted.pid))
            try:
                self._compare_in_kernel()
                self.is_in_kernel = True
            except RecordError:
                _remove_histograms(self._instance)
                self.is_in_kernel = False
                self._instance.enable(
                    [
                        f"syscalls/sys_{end}_{call}"
                        for call in SYNC_CALLS
                        for end in ("enter", "exit")
                    ]
                )
            # Else a reader is woken only when the buffer is half full.
            with contextlib.suppress(RecordError):
                self._instance.write("buffer_percent", "0")
            self.fd = os.open(self._instance.folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
            self._instance.write("tracing_on", "1")
        except BaseException:
            self.close()
            raise

    def _compare_in_kernel(self) -> None:
        try:
            append(self._tracefs / _FILE, f"{self._event} u64 lat; int tid")
        except OSError as error:
            raise RecordError(f"no event for slow syncs: {error.strerror}") from None
        self._is_defined = True
        self._set_histograms()
        event = f"synthetic/{self._event}"
        self._instance.set_filter(event, f"lat > {self._limit_ns}")
        self._instance.write(f"events/{event}/enable", "1")

    def _set_histograms(self) -> None:
        # A name that the kernel would have to escape is compared later.
        is_plain = self._comm is not None and re.fullmatch(r"[\w.:-]+", self._comm)
        condition = f' if COMM == "{self._comm}"' if is_plain else ""
        for call in SYNC_CALLS:
            entry, exit_ = f"syscalls/sys_enter_{call}", f"syscalls/sys_exit_{call}"
            if not (self._instance.folder / "events" / entry).is_dir():
                continue
            keys = f"hist:keys=common_pid:{call}{{}}=common_timestamp{{}}:size={_SIZE}:clock=boot"
            self._instance.trigger(entry, keys.format("_at", "") + condition)
            made = f":onmatch(syscalls.sys_enter_{call}).trace({self._event},${call}_ns,common_pid)"
            self._instance.trigger(exit_, keys.format("_ns", f"-${call}_at") + made + condition)

    def seen(self) -> int:
        """Returns how many there were since the creation, also those that nobody has read before newer ones took their place."""
        keys = ("entries", "overrun", "read events")
        return sum(n.get(key, 0) for n in self._instance.stats().values() for key in keys)

    def read(self, most_bytes: int | None = None) -> list[Slow]:
        """Returns the slow syncs since the last time, or about so many bytes of them."""
        taken = 0
        with contextlib.suppress(BlockingIOError):
            while (most_bytes is None or taken < most_bytes) and (
                data := os.read(self.fd, 1 << 16)
            ):
                self._rest += data
                taken += len(data)
        *lines, self._rest = self._rest.split(b"\n")
        found = (self._slow(line.decode(errors="replace")) for line in lines)
        return [slow for slow in found if slow is not None]

    def _slow(self, line: str) -> Slow | None:
        parts = _LINE.match(line)
        if parts is None:
            return None
        comm, tid, text = parts[1].strip(), int(parts[2]), parts[5]
        # The kernel remembers a limited number of names.
        if comm == _UNKNOWN:
            with contextlib.suppress(OSError):
                comm = Path(f"/proc/{tid}/comm").read_text(errors="replace").rstrip("\n")
        if self._comm is not None and comm not in (self._comm, _UNKNOWN):
            return None
        now_ns = (int(parts[3]) * 10**6 + int(parts[4])) * _US
        if self.is_in_kernel:
            found = _SLOW.search(text)
            return Slow(now_ns, int(found[1]), tid, comm) if found else None
        if _ENTRY.match(text):
            self._entered[tid] = now_ns
        elif _EXIT.match(text):
            began_ns = self._entered.pop(tid, now_ns)
            if now_ns - began_ns > self._limit_ns:
                return Slow(now_ns, now_ns - began_ns, tid, comm)
        return None

    def forget_ended(self) -> None:
        """Begins the histograms anew when one is half full, because the kernel keeps threads that have ended.

        A sync that runs at this moment is not seen.

        Raises:
            RecordError: the kernel does not let it.
        """
        if not self.is_in_kernel:
            return
        events = [f"syscalls/sys_{end}_{call}" for call in SYNC_CALLS for end in ("enter", "exit")]
        rows = (self._instance.histogram(event).count("hitcount:") for event in events)
        # They cannot be cleared, since they define variables.
        if any(count > _SIZE // 2 for count in rows):
            _remove_histograms(self._instance)
            self._set_histograms()

    def close(self) -> None:
        """Removes the instance and the event. It may be called again."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        _remove_instance(self._instance)
        if self._is_defined:
            self._is_defined = False
            with contextlib.suppress(OSError):
                append(self._tracefs / _FILE, f"!{self._event}")


def remove_dead(tracefs: Path) -> None:
    """Removes the instances and the events of recorders that were killed."""
    for folder in dead_instances(tracefs):
        if folder.name.endswith(tuple(f"-{name}" for name in _NAMES)):
            _remove_instance(Instance(tracefs, folder))
    with contextlib.suppress(OSError):
        for name, pid, start in _DEFINED.findall((tracefs / _FILE).read_text(errors="replace")):
            if not is_running(int(pid), start):
                with contextlib.suppress(OSError):
                    append(tracefs / _FILE, f"!{name}")


def _histograms(instance: Instance, event: str) -> list[str]:
    """Returns the histograms of an event as the kernel shows them, which is how it takes them again."""
    with contextlib.suppress(OSError):
        text = (instance.folder / "events" / event / "trigger").read_text()
        lines = (line for line in text.splitlines() if line.startswith("hist:"))
        return [re.sub(r" \[(active|paused)\]$", "", line) for line in lines]
    return []


def _remove_histograms(instance: Instance) -> None:
    """Removes the histograms. Those of the exits refer to the others, and go first."""
    for end in ("exit", "enter"):
        for call in SYNC_CALLS:
            event = f"syscalls/sys_{end}_{call}"
            for one in _histograms(instance, event):
                with contextlib.suppress(RecordError):
                    instance.trigger(event, f"!{one}")


def _remove_instance(instance: Instance) -> None:
    """Removes an instance with its histograms, which would keep it."""
    _remove_histograms(instance)
    instance.remove()


def _threads(pid: int) -> set[int]:
    with contextlib.suppress(OSError):
        return {int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()}
    return {pid}
