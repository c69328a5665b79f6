"""The recorders of one recording: started, checked and stopped together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from syncline.record import tracefs
from syncline.record.bpftrace import start_script
from syncline.record.errors import RecordError
from syncline.record.processes import Tasks
from syncline.record.ring_buffer import RingBuffer
from syncline.record.routes import Route
from syncline.record.tracer import Tracer
from syncline.recordings import Filter

Say = Callable[[str], None]


@dataclass
class Recorders:
    """The recorders that run. `inputs` are the entries of the manifest for what they wrote."""

    inputs: list[dict[str, Any]] = field(default_factory=list)
    ring: RingBuffer | None = None
    # (tracer, format of its log)
    tracers: list[tuple[Tracer, str]] = field(default_factory=list)

    def start(
        self, route: Route, folder: Path, request: Filter, buffer_kb: int, tasks: Tasks
    ) -> None:
        """Starts the recorders of a route. strace is started with the command instead.

        Raises:
            RecordError: a recorder does not start.
        """
        if route.script is not None:
            log = folder / ("stacks.log" if route.name == "ring-buffer" else "events.log")
            self.tracers.append((start_script(route.script, request, log), "thesis"))
        if route.name == "ring-buffer":
            mounted = tracefs.find()
            if mounted is None:
                raise RecordError("tracefs is not mounted", "see `syncline doctor`")
            self.ring = RingBuffer(mounted, folder, buffer_kb, tasks)

    def failure(self) -> str | None:
        """Returns why a recorder has stopped early; None if all of them run."""
        if self.ring is not None and self.ring.failed is not None:
            return f"the ring buffer: {self.ring.failed.strerror}"
        exited = [tracer.name for tracer, _ in self.tracers if tracer.ended]
        return f"{exited[0]} has exited" if exited else None

    def stop(self, say: Say) -> None:
        """Waits until the recorders have written all events, and stops them."""
        for tracer, source in self.tracers:
            code = tracer.stop()
            entry: dict[str, Any] = {
                "file": tracer.log.name,
                "source": source,
                "program": tracer.command,
            }
            if code != 0:
                entry["exit_code"] = code
                say(f"warning: {tracer.name} exited with {code}; see {tracer.errors}")
            self.inputs.append(entry)
        if self.ring is not None:
            counts = self.ring.stop()
            if counts.lost:
                say(
                    f"warning: the kernel lost {counts.lost:,} events because its ring buffer was full:"
                    " give it more memory with --buffer"
                )
            self.inputs.insert(0, {"file": "trace.dat", "source": "trace-dat", **asdict(counts)})

    def close(self) -> None:
        """Kills the tracers and removes the tracing instance. It may be called after `stop`."""
        for tracer, _ in self.tracers:
            tracer.kill()
        if self.ring is not None:
            self.ring.close()
