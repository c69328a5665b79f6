"""The recorders of one recording: started, checked and stopped together."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from syncline.record import tracefs
from syncline.record.bpftrace import start_script
from syncline.record.dynamic_recorder import DynamicRecorder
from syncline.record.errors import RecordError
from syncline.record.guard import Guard
from syncline.record.patched_recorder import PatchedRecorder
from syncline.record.processes import Tasks
from syncline.record.ring_buffer import Counts, RingBuffer
from syncline.record.routes import Route
from syncline.record.tracer import Tracer
from syncline.record.user_stacks import FILE as STACKS
from syncline.record.user_stacks import UserStacks
from syncline.run_directory import Filter

Say = Callable[[str], None]
# The share of the memory that the buffer of user stacks gets.
_STACKS_SHARE = 4


@dataclass
class Recorders:
    """The recorders that run. `inputs` are the entries of the manifest for what they wrote."""

    inputs: list[dict[str, Any]] = field(default_factory=list)
    ring: RingBuffer | None = None
    kernel: DynamicRecorder | PatchedRecorder | None = None
    stacks: UserStacks | None = None
    # Why user stacks cannot be recorded; empty if they can.
    no_stacks: str = ""
    # (tracer, format of its log)
    tracers: list[tuple[Tracer, str]] = field(default_factory=list)
    _guard: Guard | None = None
    _folder: Path | None = None
    # Where the last capture was saved.
    _saved: Path | None = None
    # CLOCK_BOOTTIME when recording began.
    _began: int = 0

    def start(
        self,
        route: Route,
        folder: Path,
        request: Filter,
        buffer_kb: int,
        tasks: Tasks,
        *,
        has_writes: bool = False,
        has_reads: bool = True,
        has_files: bool = False,
        overwrites: bool = False,
    ) -> None:
        """Starts the recorders of a route. strace is started with the command instead.

        If they `overwrite`, which only ring buffers do, the newest events are kept until `save`.

        With `has_writes`, the route dynamic-events also records each write, and with `has_files` operations on files;
        with `has_reads`, it and the route ring-buffer record bios that read.

        Raises:
            RecordError: a recorder does not start.
        """
        if route.script is not None:
            log = folder / ("events.log" if route.name == "bpftrace" else "stacks.log")
            self.tracers.append((start_script(route.script, request, log), "bpftrace"))
        if route.name in ("ring-buffer", "dynamic-events"):
            mounted = tracefs.find()
            if mounted is None:
                raise RecordError("tracefs is not mounted", "see `syncline doctor`")
            self._guard = Guard(mounted)
            if route.name == "dynamic-events":
                self.kernel = DynamicRecorder(
                    mounted,
                    folder,
                    buffer_kb,
                    tasks,
                    has_writes=has_writes,
                    has_reads=has_reads,
                    has_files=has_files,
                    wanted=request,
                    overwrites=overwrites,
                )
            else:
                self.kernel = PatchedRecorder(
                    mounted, folder, buffer_kb, tasks, has_reads=has_reads, overwrites=overwrites
                )
            self.ring = self.kernel.ring
            self._folder = folder
            if route.script is None:
                # Stacks are worth less than the recording.
                try:
                    self.stacks = UserStacks(self.ring, max(buffer_kb // _STACKS_SHARE, 64))
                except RecordError as error:
                    self.no_stacks = error.message

    def begin(self) -> None:
        """Starts recording events. bpftrace has been recording since it was started."""
        self._began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if self.kernel is not None:
            self.kernel.start()

    def follow(self, pid: int) -> None:
        """Records more of a process and its descendants, if the route can."""
        if self.kernel is not None:
            self.kernel.follow(pid)

    def failure(self) -> str | None:
        """Returns why a recorder has stopped early; None if all of them run."""
        if self.ring is not None and self.ring.failed is not None:
            return f"the ring buffer: {self.ring.failed}"
        return next(filter(None, (tracer.failure() for tracer, _ in self.tracers)), None)

    def stop(self, say: Say) -> None:
        """Waits until the recorders have written all events, and stops them."""
        for tracer, source in self.tracers:
            failure = tracer.failure()
            code = tracer.stop()
            entry: dict[str, Any] = {
                "file": tracer.log.name,
                "source": source,
                "program": tracer.command,
            }
            if failure := failure or tracer.failure():
                entry |= {"failure": failure, "known_until_ns": tracer.known_until or self._began}
            if code != 0:
                entry["exit_code"] = code
                say(f"warning: {tracer.name} exited with {code}; see {tracer.errors}")
            self.inputs.append(entry)
        if self.kernel is not None:
            self._add_inputs(self.kernel.stop(), self._folder, say)

    def save(self, folder: Path, from_ns: int, say: Say) -> int:
        """Writes what was recorded from a time on into a folder. Only if they overwrite. Returns CLOCK_BOOTTIME from which on all is there.

        Raises:
            RecordError: it could not be written.
        """
        assert self.kernel is not None
        assert self.ring is not None
        self.inputs = []
        try:
            saved = self.kernel.save(folder, from_ns)
            self._add_inputs(saved.counts, folder, say)
            self._saved = folder
        finally:
            # Pages that stay would be older than those of the next capture.
            self.ring.forget_pages()
        for entry in self.inputs:
            entry["known_from_ns"] = saved.known_from_ns
        return saved.known_from_ns

    def _add_inputs(self, counts: Counts, folder: Path | None, say: Say) -> None:
        """Describes what the ring buffer has recorded, and writes the stacks."""
        if self.kernel is not None:
            dynamic = self.dynamic
            explained = self._explained(dynamic) if dynamic else 0
            if missed := counts.missed - explained:
                say(
                    f"warning: probes missed {missed:,} events, which came in an interrupt while"
                    " another probe ran; fprobes, which newer kernels have, do not miss them"
                )
            if overrun := counts.lost - counts.missed:
                say(
                    f"warning: the kernel lost {overrun:,} events because its ring buffer was full:"
                    " give it more memory with --buffer"
                )
            entry = {"file": "trace.dat", "source": "trace-dat", **asdict(counts)}
            if self.ring is not None and self.ring.failed is not None:
                entry |= {"failure": self.ring.failed, "known_until_ns": self.ring.known_until}
            if dynamic is not None:
                entry["probes"] = self._probe_facts(dynamic, say)
            elif self.kernel.problems:
                entry["problems"] = self.kernel.problems
            for problem in self.kernel.problems:
                say(f"warning: {problem}")
            self.inputs.insert(0, entry)
            self._write_stacks(folder, say)

    @property
    def dynamic(self) -> DynamicRecorder | None:
        """The recorder of the route dynamic-events."""
        return self.kernel if isinstance(self.kernel, DynamicRecorder) else None

    @property
    def stack_logs(self) -> list[Path]:
        """The logs with user stacks."""
        folder = self._saved or self._folder
        own = [folder / STACKS] if self.stacks is not None and folder else []
        return [*own, *(tracer.log for tracer, _ in self.tracers)]

    def _write_stacks(self, folder: Path | None, say: Say) -> None:
        if self.no_stacks:
            say(f"warning: no user stacks: {self.no_stacks}")
        if self.stacks is None or folder is None:
            return
        counts = self.stacks.write(folder / STACKS)
        self.inputs.append({"file": STACKS, "source": "bpftrace", **counts})
        if counts["lost"]:
            say(
                f"warning: {counts['lost']:,} calls have no user stack because their buffer was full"
            )

    @staticmethod
    def _explained(dynamic: DynamicRecorder) -> int:
        """Returns the missed events that have a warning of their own."""
        return sum(dynamic.never_seen.values()) + dynamic.uncounted

    @staticmethod
    def _probe_facts(dynamic: DynamicRecorder, say: Say) -> dict[str, Any]:
        """Returns what the manifest says of the probes, and says what has failed."""
        facts = dynamic.facts()
        if dynamic.uncounted:
            say(
                f"warning: the kernel did not count who made {dynamic.uncounted:,} folios dirty, because too many"
                " files were written at once; they count as lost"
            )
        facts["without_effect"] = sorted(dynamic.never_seen)
        if facts["without_effect"]:
            say(
                f"warning: the probes of {', '.join(facts['without_effect'])} had no effect although there were syncs:"
                " the compiler has inlined the probed functions, or the file system has no sync function;"
                " what they did not record counts as lost"
            )
        return facts

    def close(self) -> None:
        """Kills the tracers and removes the tracing instance. It may be called after `stop`."""
        for tracer, _ in self.tracers:
            tracer.kill()
        if self.kernel is not None:
            self.kernel.close()
        if self._guard is not None:
            self._guard.end()
