"""The request for a recording, and the checks that it can be met."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from syncline.record import dynamic_events, routes, slow_syncs, tracefs
from syncline.record.errors import RecordError
from syncline.record.recorders import Say
from syncline.run_directory import Filter


@dataclass(frozen=True)
class Request:
    """What is to be recorded."""

    # Its name. It does not exist, or is empty.
    folder: Path
    command: list[str] = field(default_factory=list)
    seconds: float | None = None
    route: routes.Name | None = None
    # With a pid, the recording ends when that process exits.
    filter: Filter = field(default_factory=Filter)
    buffer_kb: int = 16_384
    force: bool = False
    # Also all writes; routes dynamic-events and strace only.
    has_writes: bool = False
    # Also bios that read; routes ring-buffer and dynamic-events.
    has_reads: bool = True
    # Also operations on files; route dynamic-events.
    has_files: bool = False
    # By the kernel and Python alone: not by bpftrace or strace.
    is_alone: bool = False
    # The size of the folder at which the recording ends; None for no limit.
    disk_bytes: int | None = None
    # Somebody reads a line of what happens, where the recorder is not the one who knows it.
    has_reader: bool = False


def target(request: Request) -> routes.Target:
    """Returns what is recorded: a command, else the process of --pid, else all processes."""
    if request.command:
        return "command"
    if request.filter.pid is not None:
        return "process"
    return "machine"


def unable(request: Request) -> dict[routes.Name, RecordError]:
    """Returns the routes that cannot record what was requested, and why."""
    lacking: dict[routes.Name, RecordError] = {}
    for is_wanted, what, having in (
        (request.has_writes, "writes", routes.WITH_WRITES),
        (request.has_files, "operations on files", routes.WITH_FILES),
    ):
        error = RecordError(f"it does not record {what}", "")
        lacking |= {name: error for name in routes.NAMES if is_wanted and name not in having}
    if request.is_alone:
        error = RecordError("it needs more than the recorder that travels as one file")
        lacking |= dict.fromkeys(("bpftrace", "strace"), error)
    return lacking


def choose(request: Request, failed: dict[routes.Name, RecordError]) -> routes.Route:
    """Returns the best route for a request, without those that have `failed`.

    Raises:
        RecordError: there is none.
    """
    route = routes.choose(request.route, target(request), failed)
    return routes.without_program(route) if request.is_alone else route


def check_exists(pid: int | None) -> None:
    """Raises RecordError if there is no such process."""
    if pid is not None and not Path(f"/proc/{pid}").exists():
        raise RecordError(
            f"there is no process {pid} to record", "it may have exited; list processes: ps -e"
        )


def remove_dead_instances(say: Say) -> None:
    """Removes what recorders that were killed have left in the kernel."""
    mounted = tracefs.find()
    if mounted is not None and os.geteuid() == 0:
        slow_syncs.remove_dead(mounted)
        for name in tracefs.remove_dead_instances(mounted):
            say(f"removed {name}, the tracing instance of a recorder that was killed")
        for name in dynamic_events.remove_dead_groups(mounted):
            say(f"removed {name}, the probes of a recorder that was killed")
