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
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from syncline.record import machine, programs, routes, symbols, tracefs
from syncline.record.errors import RecordError
from syncline.record.programs import Tracer
from syncline.record.ring_buffer import SYNC_CALLS, RingBuffer
from syncline.record.routes import Route
from syncline.recordings import MANIFEST, SYMBOLS, TASKS, Filter

SCHEMA_VERSION = 1
# What a process maps later, and threads that it starts.
_LOOK_AGAIN_S = 0.5
_LITTLE_ROOM_BYTES = 256 << 20

Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What is to be recorded."""

    folder: Path
    command: list[str] = field(default_factory=list)
    seconds: float | None = None
    route: routes.Name | None = None
    # With a pid, the recording ends when that does.
    filter: Filter = field(default_factory=Filter)
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
    _must_live(wanted.filter.pid)
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


def _must_live(pid: int | None) -> None:
    if pid is not None and not Path(f"/proc/{pid}").exists():
        raise RecordError(
            f"there is no process {pid} to record", "ps -e shows them; it may have ended meanwhile"
        )


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
        "filter": asdict(wanted.filter),
        "filter_at_conversion": asdict(replace(wanted.filter, **dict.fromkeys(route.filters))),
        "before": machine.describe(),
    }
    recorders = _Recorders()
    maps = machine.Maps()
    tasks = machine.Tasks()
    with contextlib.ExitStack() as stack:
        stack.callback(recorders.close)
        _start(wanted, route, recorders, tasks)
        stops = stack.enter_context(_signals())
        _must_live(wanted.filter.pid)
        if recorders.ring is not None:
            recorders.ring.start()
        say(
            "recording; Ctrl-C ends it"
            if not wanted.command
            else f"recording {shlex.join(wanted.command)}"
        )
        manifest["ended_by"], manifest["exit_code"] = _wait(
            wanted, route, recorders, (maps, tasks), stops
        )
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
    tasks.write(folder / TASKS, recorders.ring.comms if recorders.ring is not None else {})
    logs = [tracer.log for tracer, _ in recorders.tracers]
    named = symbols.write(folder / SYMBOLS, logs, maps, tasks)
    if named.addresses:
        say(
            f"of {named.addresses} addresses in stacks, which bpftrace could not name, {named.functions} have"
            f" their function's name now, and {named.files} that of their file alone"
        )
    manifest["inputs"] = recorders.inputs
    return manifest


def _suspended(before: dict[str, Any], after: dict[str, Any]) -> int:
    """CLOCK_BOOTTIME goes on in suspend, CLOCK_MONOTONIC does not."""
    a, b = before["clocks_ns"], after["clocks_ns"]
    return int((b["boottime"] - a["boottime"]) - (b["monotonic"] - a["monotonic"]))


def _start(wanted: Wanted, route: Route, recorders: _Recorders, tasks: machine.Tasks) -> None:
    if route.script is not None:
        program = programs.which("bpftrace") or "bpftrace"
        version = programs.bpftrace_version(program)
        # A command does not run yet, so its number cannot be asked for.
        arguments = [
            str(wanted.filter.pid or 0),
            wanted.filter.comm or "",
            str(wanted.filter.device or 0),
        ]
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
        recorders.ring = RingBuffer(folder, wanted.folder, wanted.buffer_kb, tasks)


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
    wanted: Wanted,
    route: Route,
    recorders: _Recorders,
    watched: tuple[machine.Maps, machine.Tasks],
    stops: _Stops,
) -> tuple[str, int | None]:
    """Until the command has ended, the time is over, or somebody has had enough."""
    maps, tasks = watched
    known = set(machine.processes())
    maps.look(sorted(known))
    tasks.look(sorted(known))
    child = _child(wanted, route, recorders) if wanted.command or route.name == "strace" else None
    root = child.pid if child is not None else wanted.filter.pid
    until = time.monotonic() + wanted.seconds if wanted.seconds is not None else None
    look_at = look_again_at = 0.0
    try:
        while True:
            if child is not None and child.poll() is not None:
                return "command", child.returncode
            if stops.signal is not None:
                return signal.Signals(stops.signal).name, None
            if until is not None and time.monotonic() >= until:
                return "time", None
            if wanted.filter.pid is not None and not Path(f"/proc/{wanted.filter.pid}").exists():
                return "process", None
            failed = recorders.failed()
            if failed is not None:
                return f"failure: {failed}", None
            began = time.monotonic()
            if began >= look_at:
                again = began >= look_again_at
                if root is not None:
                    family = machine.family(root)
                    maps.look(family, again)
                    tasks.look(family, again)
                if again:
                    look_again_at = began + _LOOK_AGAIN_S
                    # A server that a command starts is none of its children any more.
                    new = sorted(set(machine.processes()) - known)
                    maps.look(new)
                    tasks.look(new)
                    known.update(new)
                # Looking takes from what is measured: a fifth of one core at most.
                now = time.monotonic()
                look_at = now + min(4 * (now - began), _LOOK_AGAIN_S)
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
            "io_uring_setup", "io_uring_enter", "io_submit",
        ]  # fmt: skip
        strace = [
            programs.which("strace") or "strace", "-I", "2", "-f", "-ttt", "-T", "-yy", "-s", "256",
            # A call that this machine or this strace does not know is none that it could miss.
            "-e", f"trace={','.join(f'?{call}' for call in calls)}", "-o", str(log),
        ]  # fmt: skip
        command = [*strace, *(command or ["-p", str(wanted.filter.pid)])]
        recorders.inputs.append({"file": log.name, "source": "strace", "program": command})
    try:
        return subprocess.Popen(command)
    except OSError as error:
        raise RecordError(
            f"cannot run {command[0]}: {error.strerror}", "is it on PATH? Give its full name"
        ) from None
