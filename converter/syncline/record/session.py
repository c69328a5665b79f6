"""One recording, from the first check to the manifest.

It starts the recorders, runs the command, waits for its end and stops the recorders.
"""

from __future__ import annotations

import contextlib
import errno
import json
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from syncline.record import machine
from syncline.record import manifest as manifest_file
from syncline.record.awaited import Awaited
from syncline.record.errors import OutputError, RecordError, RouteError
from syncline.record.live import Live, Show
from syncline.record.log_copy import Reserve
from syncline.record.recorders import Recorders, Say
from syncline.record.request import (
    Request,
    check_exists,
    choose,
    remove_dead_instances,
    unable,
)
from syncline.record.ring_buffer import RingBuffer
from syncline.record.routes import Route
from syncline.record.run_folder import RunFolder
from syncline.record.salvage import BEGUN
from syncline.record.strace import Strace, strace_command
from syncline.record.tracefs_mount import mounted
from syncline.record.watch import Scanner, end_child, stop_signal, wait_for_end

Attach = Callable[[RingBuffer], None]
_LITTLE_SPACE_BYTES = 256 << 20
_DISK_EVERY_S = 0.5
_STRACE_LOG = "strace.log"
# A disk, a quota or a limit on the size of files.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def recorded(
    request: Request, say: Say, show: Show | None = None
) -> Iterator[tuple[RunFolder, dict[str, Any]]]:
    """Records into a new folder. Yields the folder and the manifest.

    `show` gets a line once a second that says what happens, and an empty one at the end.

    Within the block, the folder is open and nobody else can write to it.

    Raises:
        RecordError: nothing could be recorded. The folder is removed unless it holds data.
    """
    check_command(request)
    check_exists(request.filter.pid)
    needs_tracefs = request.route != "strace"
    with mounted(say) if needs_tracefs else contextlib.nullcontext():
        remove_dead_instances(say)
        route = choose(request, unable(request))
        with contextlib.closing(RunFolder.create(request.folder, replace=request.force)) as folder:
            try:
                shown = lambda text: say(folder.shown(text))  # noqa: E731
                yield folder, _record_into(folder, request, route, shown, show)
            finally:
                manifest_file.hand_over(folder, say)


def check_command(request: Request) -> None:
    """Raises RecordError if there is no such program."""
    if request.command and shutil.which(request.command[0]) is None:
        raise RecordError(
            f"cannot run {request.command[0]}: there is no such program",
            "check PATH, or give the full path of the program",
        )


def _record_into(
    folder: RunFolder, request: Request, route: Route, say: Say, show: Show | None
) -> dict[str, Any]:
    try:
        say_little_space(folder, say)
        manifest = record_by_best(folder.path, request, route, say, show=show)
        manifest_file.write(folder, manifest)
        (folder.path / BEGUN).unlink(missing_ok=True)
    except BaseException as error:
        # Keep the data of a recording that has failed, if there is any.
        folder.remove_unless_data()
        if isinstance(error, RecordError):
            # Of the same class, which decides on the exit code and on how the message is shown.
            raise type(error)(folder.shown(error.message), folder.shown(error.hint)) from None
        if isinstance(error, OSError) and error.errno in FULL:
            raise _full(folder, error) from None
        raise
    return manifest


def say_little_space(folder: RunFolder, say: Say) -> None:
    """Warns if the disk of a folder has little room."""
    free = shutil.disk_usage(folder.path).free
    if free < _LITTLE_SPACE_BYTES:
        say(f"warning: only {free >> 20} MiB are free on the disk of {folder.name}")


def _full(folder: RunFolder, error: OSError) -> OutputError:
    """What to say if the files of a recording do not fit on the disk."""
    hint = "free some space, or name a folder on another disk with -o"
    if folder.path.exists():
        hint += f"; {folder.name} has no manifest, but its logs hold what was recorded until then"
    return OutputError(f"cannot write to {folder.name}: {(error.strerror or '').lower()}", hint)


def record_by_best(
    folder: Path,
    request: Request,
    route: Route,
    say: Say,
    attach: Attach | None = None,
    show: Show | None = None,
) -> dict[str, Any]:
    """Records by a route or, if it does not start and was not requested, by the next best one. Returns the manifest.

    If the pages leave this machine, `attach` is called with each ring buffer before it starts.

    Raises:
        RecordError: nothing could be recorded.
    """
    failed = unable(request)
    while True:
        say(f"route: {route.name}, because {route.why}")
        if route.cannot_see:
            say(f"it cannot see {route.cannot_see}")
        try:
            return _record(folder, request, route, say, attach, show)
        except RouteError as error:
            is_last = request.route is not None
            # What has been written until now belongs to no recording. The messages of a tracer may be of use.
            for file in folder.iterdir():
                if not is_last or file.suffix != ".err":
                    file.unlink()
            failed[route.name] = error
            if is_last:
                for file in folder.glob("*.err"):
                    if file.stat().st_size:
                        raise RouteError(
                            error.message, f"its messages are in {file}; {error.hint}"
                        ) from None
                raise
            hint = f" ({error.hint})" if error.hint else ""
            say(f"warning: {route.name} does not start: {error.message}{hint}")
            route = choose(request, failed)


def _record(
    folder: Path,
    request: Request,
    route: Route,
    say: Say,
    attach: Attach | None,
    show: Show | None,
) -> dict[str, Any]:
    reserve = Reserve(folder)
    manifest = manifest_file.begin(folder, request, route)
    (folder / BEGUN).write_text(json.dumps(manifest))
    recorders, scanner = Recorders(), Scanner()
    with contextlib.ExitStack() as stack:
        stack.callback(reserve.release)
        stack.callback(recorders.close)
        try:
            recorders.start(
                route,
                folder,
                request.filter,
                request.buffer_kb,
                scanner.tasks,
                has_writes=request.has_writes,
                has_reads=request.has_reads,
                has_files=request.has_files,
            )
        except RecordError as error:
            raise RouteError(error.message, error.hint) from None
        if recorders.dynamic is not None:
            say(f"probes: {recorders.dynamic.group.summary()}")
            for text in recorders.dynamic.group.report.gap_texts():
                say(f"warning: {text}")
        if attach is not None and recorders.ring is not None:
            attach(recorders.ring)
        stop = stack.enter_context(stop_signal())
        check_exists(request.filter.pid)
        # Before the first event, so that who makes it is known even if it ends at once.
        scanner.scan_all()
        awaited = Awaited(request.filter, scanner, recorders, say)
        live = None if show is None else Live(recorders, folder, request.filter, show)
        if live is not None:
            stack.callback(live.close)
        recorders.begin()
        what = f"recording {shlex.join(request.command)}" if request.command else "recording"
        say(what if request.command or request.seconds else f"{what}; Ctrl-C ends it")
        strace, child = _start_child(folder, request, route, recorders)
        if strace is not None:
            stack.callback(strace.finish)
        if child is not None or request.filter.pid is not None:
            recorders.follow(child.pid if child is not None else request.filter.pid)
        disk = _Disk(folder, request.disk_bytes)

        def look() -> str | None:
            awaited.look_if_due()
            if live is not None:
                live.look_if_due()
            return disk.look_if_due()

        try:
            failure = recorders.failure if strace is None else strace.failure
            manifest["ended_by"], manifest["exit_code"] = wait_for_end(
                child,
                request.filter.pid,
                request.seconds,
                failure,
                stop,
                scanner,
                look,
            )
        finally:
            if live is not None:
                live.close()
            has_exited = child is not None and child.poll() is not None
            if child is not None:
                end_child(child, signal.SIGINT if route.name == "strace" else signal.SIGTERM)
            # What remains to be written is small, or has its room in the files of the recorders.
            reserve.release()
        say("draining")
        # A recorder may have ended together with what it recorded.
        early = recorders.failure()
        recorders.stop(say)
        if strace is not None:
            strace.finish()
            _check_attached(folder, request, route, manifest["exit_code"])
            early = strace.failure() or (strace.early_end() if has_exited else None)
        if early := early or recorders.failure():
            manifest["ended_by"] = f"failure: {early}"
    manifest["after"] = machine.describe()
    if awaited.missing:
        # A filter that keeps nothing, because nothing of it was there.
        manifest["never_appeared"] = [*awaited.missing.values()]
    if strace is not None and early:
        # strace has the exit code of the command only if it has seen its end.
        manifest["exit_code"] = None
        known_until = _boottime(strace.last_time(), manifest)
        recorders.inputs[-1] |= {"failure": early, "known_until_ns": known_until}
        if has_exited and strace.runs_on():
            say("warning: the command runs on, and is no longer recorded")
    manifest_file.check_clocks(manifest, say)
    manifest_file.write_tables(folder, recorders, scanner, say)
    manifest["inputs"] = recorders.inputs
    return manifest


class _Disk:
    """The limit of the size of a folder."""

    def __init__(self, folder: Path, limit_bytes: int | None) -> None:
        self._folder, self._limit_bytes = folder, limit_bytes
        self._next = 0.0

    def look_if_due(self) -> str | None:
        """Returns `disk` once the limit is reached."""
        if self._limit_bytes is None or time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + _DISK_EVERY_S
        size = 0
        for file in self._folder.iterdir():
            with contextlib.suppress(OSError):
                size += file.stat().st_size
        return "disk" if size >= self._limit_bytes else None


def _boottime(realtime: int | None, manifest: dict[str, Any]) -> int:
    """Returns a time of day on CLOCK_BOOTTIME, as the conversion moves those of strace; without one, when the recording began."""
    first, last = (manifest[end]["clocks_ns"] for end in ("before", "after"))
    if realtime is None:
        return int(first["boottime"])
    since, span = realtime - first["realtime"], last["realtime"] - first["realtime"]
    drift = last["boottime"] - first["boottime"] - span
    within = min(max(since, 0), max(span, 0))
    return int(first["boottime"] + since + (drift * within // span if span > 0 else 0))


def _check_attached(folder: Path, request: Request, route: Route, exit_code: int | None) -> None:
    """Raises RouteError if strace could not trace the process of --pid."""
    log = folder / _STRACE_LOG
    if route.name == "strace" and not request.command and exit_code and not log.stat().st_size:
        raise RouteError(
            f"it cannot trace process {request.filter.pid}, as its message above says",
            "record the program from its start: syncline record -- CMD",
        )


def _start_child(
    folder: Path, request: Request, route: Route, recorders: Recorders
) -> tuple[Strace | None, subprocess.Popen[bytes] | None]:
    """Starts the command, or strace with it. The process is None if there is nothing to start."""
    command = request.command
    if route.name == "strace":
        log = folder / _STRACE_LOG
        command = strace_command(command, request.filter.pid, log, has_writes=request.has_writes)
        recorders.inputs.append({"file": log.name, "source": "strace", "program": command})
        strace = Strace(command, log, is_attached=not request.command)
        return strace, strace.process
    if not command:
        return None, None
    try:
        return None, subprocess.Popen(command)
    except OSError as error:
        raise RecordError(
            f"cannot run {command[0]}: {error.strerror}",
            "check PATH, or give the full path of the program",
        ) from None
