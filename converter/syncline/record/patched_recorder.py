"""The route `ring-buffer`: the tracepoints of a patched kernel, recorded by the ring buffer."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from syncline.record import probes, ring_buffer
from syncline.record.errors import RecordError
from syncline.record.processes import Tasks
from syncline.record.ring_buffer import RingBuffer
from syncline.record.thread_states import ThreadStates
from syncline.record.tracefs import dropped_hits

# The trace system of kernel-patch/.
_WRITEBACK = "wb_tracer"
_SYNC_START = f"{_WRITEBACK}/sync_start"
# Interval at which new threads that sync are looked for.
_LOOK_EVERY_S = 0.25
_BY_THREAD = "hist:keys=common_pid:size=16384"
_THREAD = re.compile(r"^\{ common_pid: *(\d+) *\} hitcount:", re.MULTILINE)


def is_patched(tracefs: Path) -> bool:
    """Returns whether the kernel has the tracepoints of kernel-patch/."""
    return (tracefs / "events" / _SYNC_START).is_dir()


class PatchedRecorder:
    """Records into `trace.dat`, from `start` to `stop`."""

    def __init__(
        self, tracefs: Path, folder: Path, buffer_kb: int, tasks: Tasks, *, has_reads: bool = True
    ) -> None:
        """Enables the events. With `has_reads`, also those of bios that read.

        Raises:
            RecordError: the kernel does not let it. Nothing is left.
        """
        self.problems: list[str] = []
        self._threads: ThreadStates | None = None
        self._stop = threading.Event()
        self._look = threading.Thread(target=self._look_often, name="syncline-threads", daemon=True)
        self.ring = RingBuffer(tracefs, folder, buffer_kb, tasks)
        try:
            _, tracepoints = probes.load()
            shared = tracepoints.recorded(has_reads=has_reads, is_patched=True)
            for event, condition in shared:
                self.ring.main.keep_only(event, condition)
            own = (tracefs / "events" / _WRITEBACK).glob("*/")
            writeback = sorted(f"{_WRITEBACK}/{event.name}" for event in own)
            events = [*writeback, *ring_buffer.CALL_EVENTS, *(event for event, _ in shared)]
            self.ring.main.enable(events)
            self._record_threads(tracepoints.of_threads, buffer_kb)
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Starts recording events."""
        self.ring.start()
        if self._threads is not None:
            self._look.start()

    def follow(self, pid: int) -> None:
        """Records when a process and its descendants run, also before their first sync."""
        if self._threads is not None:
            self._threads.follow({pid})

    def stop(self) -> ring_buffer.Counts:
        """Stops recording, and writes the recording.

        Raises:
            RecordError: it could not be written.
        """
        self._end_look()
        if dropped := dropped_hits(self.ring.instance.histogram(_SYNC_START)):
            self.problems.append(
                f"when a thread waits for a CPU, not of all threads: {dropped:,} syncs were of threads for which a"
                " table of the kernel had no room"
            )
        return self.ring.stop()

    def close(self) -> None:
        """Removes the tracing instances. Must be called in any case."""
        self._end_look()
        self.ring.close()

    def _record_threads(self, events: tuple[str, ...], buffer_kb: int) -> None:
        try:
            self._threads = ThreadStates(self.ring, events, buffer_kb)
        except RecordError as error:
            self.problems.append(f"not when a thread waits for a CPU: {error.message}")
            return
        try:
            self.ring.instance.trigger(_SYNC_START, _BY_THREAD)
        except RecordError as error:
            self.problems.append(
                f"when a thread waits for a CPU, only of those that the command starts: {error.message}"
            )

    def _look_often(self) -> None:
        while not self._stop.wait(_LOOK_EVERY_S):
            text = self.ring.instance.histogram(_SYNC_START)
            if self._threads is not None:
                self._threads.follow({int(tid) for tid in _THREAD.findall(text)})
                self._threads.look()

    def _end_look(self) -> None:
        self._stop.set()
        if self._look.is_alive():
            self._look.join()
