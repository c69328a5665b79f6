"""The route `ring-buffer`: the tracepoints of a patched kernel, recorded by the ring buffer."""

from __future__ import annotations

import contextlib
import re
import threading
import time
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
# The same where nobody may be looking for days.
_LOOK_RARELY_S = 2.0
_BY_THREAD = "hist:keys=common_pid:size=16384"
_THREAD = re.compile(r"^\{ common_pid: *(\d+) *\} hitcount:", re.MULTILINE)


def is_patched(tracefs: Path) -> bool:
    """Returns whether the kernel has the tracepoints of kernel-patch/."""
    return (tracefs / "events" / _SYNC_START).is_dir()


class PatchedRecorder:
    """Records into `trace.dat`, from `start` to `stop`."""

    def __init__(
        self,
        tracefs: Path,
        folder: Path,
        buffer_kb: int,
        tasks: Tasks,
        *,
        has_reads: bool = True,
        overwrites: bool = False,
    ) -> None:
        """Enables the events. With `has_reads`, also those of bios that read. If it `overwrites`, the newest ones are kept until `save`.

        Raises:
            RecordError: the kernel does not let it. Nothing is left.
        """
        self.problems: list[str] = []
        self._threads: ThreadStates | None = None
        self._stop = threading.Event()
        self._look = threading.Thread(target=self._look_often, name="syncline-threads", daemon=True)
        self._every_s = _LOOK_RARELY_S if overwrites else _LOOK_EVERY_S
        self._forgot_at = time.monotonic()
        # Held while threads are looked at.
        self._looking = threading.Lock()
        self.ring = RingBuffer(tracefs, folder, buffer_kb, tasks, overwrites=overwrites)
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

    def save(self, folder: Path, from_ns: int) -> ring_buffer.Saved:
        """Writes what was recorded from a time on into a folder. Only if it overwrites.

        Raises:
            RecordError: it could not be written.
        """
        return self.ring.save(folder, from_ns)

    def forget_unused(self, keep_s: float) -> None:
        """Forgets threads that have ended, so that memory does not grow for days."""
        if time.monotonic() - self._forgot_at > keep_s and self._threads is not None:
            self._forgot_at = time.monotonic()
            with self._looking:
                self._threads.forget_ended()
            with contextlib.suppress(RecordError):
                self.ring.instance.trigger(_SYNC_START, f"{_BY_THREAD}:clear")

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
        while not self._stop.wait(self._every_s):
            text = self.ring.instance.histogram(_SYNC_START)
            with self._looking:
                if self._threads is None:
                    continue
                self._threads.follow({int(tid) for tid in _THREAD.findall(text)})
                self._threads.look()

    def _end_look(self) -> None:
        self._stop.set()
        if self._look.is_alive():
            self._look.join()
