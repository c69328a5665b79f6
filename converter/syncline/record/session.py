"""One recording from its first check to its manifest: start the tracers, run the command, drain, stop, put everything back."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from syncline.inputs import MANIFEST
from syncline.record import machine, programs, routes, tracefs
from syncline.record.errors import RecordError
from syncline.record.programs import Tracer
from syncline.record.ring_buffer import SYNC_CALLS, RingBuffer
from syncline.record.routes import Route

SCHEMA_VERSION = 1
_LOOK_EVERY_S = 0.5
_LITTLE_ROOM_BYTES = 256 << 20

Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What is to be recorded."""

    folder: Path
    command: list[str] = field(default_factory=list)
    pid: int | None = None
    seconds: float | None = None
    route: routes.Name | None = None
    comm: str | None = None
    # Kernel's number of a device: major << 20 | minor.
    device: int = 0
    buffer_kb: int = 16_384
    force: bool = False


def record(wanted: Wanted, say: Say) -> dict[str, Any]:
    """Records into a new folder and returns its manifest.

    Raises:
        RecordError: nothing could be recorded; the folder is not left behind then.
    """
    folder = wanted.folder
    if wanted.command and shutil.which(wanted.command[0]) is None:
        raise RecordError(
            f"cannot run {wanted.command[0]}: there is no such program",
            "is it on PATH? Give its full name",
        )
    _clean_up(say)
    route = routes.choose(wanted.route, bool(wanted.command))
    say(f"route: {route.name}, because {route.why}")
    if route.blind:
        say(f"it cannot see {route.blind}")
    _make(folder, wanted.force)
    try:
        room = shutil.disk_usage(folder).free
        if room < _LITTLE_ROOM_BYTES:
            say(f"warning: {room >> 20} MB are free where {folder} is")
        manifest = _run(wanted, route, say)
    except BaseException:
        # What there is of a failed recording is worth more than a clean folder, if there is any.
        if not any(path.stat().st_size for path in folder.iterdir() if path.is_file()):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    return manifest


def _clean_up(say: Say) -> None:
    folder = tracefs.find()
    if folder is not None and os.geteuid() == 0:
        for name in tracefs.clean_up(folder):
            say(f"removed {name}, the tracing instance of a recorder that was killed")


def _make(folder: Path, force: bool) -> None:
    if folder.exists() and any(folder.iterdir()):
        if not (force and (folder / MANIFEST).exists()):
            raise RecordError(
                f"{folder} is not empty",
                "name another folder with -o, or give --force to replace a recording",
            )
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(f"cannot make {folder}: {error.strerror}") from None


@dataclass
class _Recorders:
    """Those that run; `stop` gives what each says of itself."""

    inputs: list[dict[str, Any]] = field(default_factory=list)
    ring: RingBuffer | None = None
    tracers: list[tuple[Tracer, str]] = field(default_factory=list)

    def failed(self) -> str | None:
        """A recorder that has ended too early."""
        if self.ring is not None and self.ring.failed is not None:
            return f"the ring buffer: {self.ring.failed.strerror}"
        gone = [tracer.name for tracer, _ in self.tracers if tracer.ended]
        return f"{gone[0]} has ended" if gone else None

    def stop(self, say: Say) -> None:
        for tracer, source in self.tracers:
            code = tracer.stop()
            told: dict[str, Any] = {
                "file": tracer.log.name,
                "source": source,
                "program": tracer.command,
            }
            if code != 0:
                told["exit_code"] = code
                say(f"warning: {tracer.name} ended with {code}; see {tracer.errors}")
            self.inputs.append(told)
        if self.ring is not None:
            done = self.ring.stop()
            if done.lost:
                say(
                    f"warning: the kernel lost {done.lost:,} events of its ring buffer: give it more memory with --buffer"
                )
            self.inputs.insert(0, {"file": "trace.dat", "source": "trace-dat", **asdict(done)})

    def close(self) -> None:
        for tracer, _ in self.tracers:
            tracer.kill()
        if self.ring is not None:
            self.ring.close()


def _run(wanted: Wanted, route: Route, say: Say) -> dict[str, Any]:
    folder = wanted.folder
    (folder / "mountinfo").write_text(machine.mounts())
    (folder / "devices.json").write_text(json.dumps(machine.devices(), indent=2) + "\n")
    manifest: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "syncline_version": metadata.version("syncline"),
        "route": route.name,
        "why": route.why,
        "cannot_see": route.blind,
        "command": wanted.command,
        "pid": wanted.pid,
        "filters": {"comm": wanted.comm, "device": wanted.device or None},
        "before": machine.describe(),
    }
    recorders = _Recorders()
    maps = machine.Maps()
    with contextlib.ExitStack() as stack:
        stack.callback(recorders.close)
        _start(wanted, route, recorders)
        stops = stack.enter_context(_signals())
        if recorders.ring is not None:
            recorders.ring.start()
        say(
            "recording; Ctrl-C ends it"
            if not wanted.command
            else f"recording {shlex.join(wanted.command)}"
        )
        manifest["ended_by"], manifest["exit_code"] = _wait(wanted, route, recorders, maps, stops)
        say("draining")
        recorders.stop(say)
    manifest["after"] = machine.describe()
    if manifest["before"]["boot_id"] != manifest["after"]["boot_id"]:
        say("warning: the machine was restarted meanwhile")
    manifest["suspended_ns"] = _suspended(manifest["before"], manifest["after"])
    if manifest["suspended_ns"] > 10**8:
        say(
            f"warning: the machine was suspended for {manifest['suspended_ns'] / 1e9:.1f} s; syncs of that time look long"
        )
    maps.write(folder / "maps")
    manifest["inputs"] = recorders.inputs
    return manifest


def _suspended(before: dict[str, Any], after: dict[str, Any]) -> int:
    """CLOCK_BOOTTIME goes on in suspend, CLOCK_MONOTONIC does not."""
    a, b = before["clocks_ns"], after["clocks_ns"]
    return int((b["boottime"] - a["boottime"]) - (b["monotonic"] - a["monotonic"]))


def _start(wanted: Wanted, route: Route, recorders: _Recorders) -> None:
    if route.script is not None:
        program = programs.which("bpftrace") or "bpftrace"
        version = programs.bpftrace_version(program)
        # A command does not run yet, so its number cannot be asked for.
        arguments = [str(wanted.pid or 0), wanted.comm or "", str(wanted.device)]
        log = wanted.folder / ("stacks.log" if route.name == "ring-buffer" else "events.log")
        script = programs.script(route.script, version)
        if not script.is_file():
            raise RecordError(
                f"there is no script {script.name}",
                "is the installation whole? See `syncline doctor`",
            )
        script = programs.fitted(script, wanted.folder)
        tracer = Tracer("bpftrace", [program, "-q", str(script), *arguments], log)
        recorders.tracers.append((tracer, "thesis"))
        tracer.wait_until_attached()
    if route.name == "ring-buffer":
        folder = tracefs.find()
        assert folder is not None
        recorders.ring = RingBuffer(folder, wanted.folder, wanted.buffer_kb)


class _Stops:
    """Whether and why the recording is to end."""

    def __init__(self) -> None:
        self.signal: int | None = None


@contextlib.contextmanager
def _signals() -> Iterator[_Stops]:
    """Ctrl-C and SIGTERM end a recording in good order."""
    stops = _Stops()

    def note(number: int, _frame: object) -> None:
        stops.signal = number

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(
    wanted: Wanted, route: Route, recorders: _Recorders, maps: machine.Maps, stops: _Stops
) -> tuple[str, int | None]:
    """Until the command has ended, the time is over, or somebody has had enough."""
    child = _child(wanted, route, recorders) if wanted.command or route.name == "strace" else None
    root = child.pid if child is not None else wanted.pid
    until = time.monotonic() + wanted.seconds if wanted.seconds is not None else None
    looked = 0.0
    try:
        while True:
            if child is not None and child.poll() is not None:
                return "command", child.returncode
            if stops.signal is not None:
                return signal.Signals(stops.signal).name, None
            if until is not None and time.monotonic() >= until:
                return "time", None
            if wanted.pid is not None and not Path(f"/proc/{wanted.pid}").exists():
                return "process", None
            failed = recorders.failed()
            if failed is not None:
                return f"failure: {failed}", None
            if root is not None and time.monotonic() - looked >= _LOOK_EVERY_S:
                maps.look(root)
                looked = time.monotonic()
            time.sleep(0.02)
    finally:
        if child is not None and child.poll() is None:
            child.send_signal(signal.SIGINT if route.name == "strace" else signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=10)
            if child.poll() is None:
                child.kill()
                child.wait()


def _child(wanted: Wanted, route: Route, recorders: _Recorders) -> subprocess.Popen[bytes]:
    command = wanted.command
    if route.name == "strace":
        log = wanted.folder / "strace.log"
        calls = [
            *SYNC_CALLS,
            # Whose descriptors they are, and which file is behind them.
            "open", "openat", "openat2", "creat", "close", "close_range", "dup", "dup2", "dup3", "fcntl",
            "clone", "clone3", "fork", "vfork", "execve", "prctl",
            "rename", "renameat", "renameat2", "pwritev2",
            # That they are used is all that can be seen of them.
            "io_uring_setup", "io_uring_enter",
        ]  # fmt: skip
        strace = [
            programs.which("strace") or "strace", "-I", "2", "-f", "-ttt", "-T", "-yy", "-s", "256",
            # A call that this machine or this strace does not know is none that it could miss.
            "-e", f"trace={','.join(f'?{call}' for call in calls)}", "-o", str(log),
        ]  # fmt: skip
        command = [*strace, *(command or ["-p", str(wanted.pid)])]
        recorders.inputs.append({"file": log.name, "source": "strace", "program": command})
    try:
        return subprocess.Popen(command)
    except OSError as error:
        raise RecordError(
            f"cannot run {command[0]}: {error.strerror}", "is it on PATH? Give its full name"
        ) from None
