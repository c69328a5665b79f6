"""Chooses the route of a recording: the best one that the machine, the kernel and the user allow."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from syncline.printable import printable
from syncline.record import kernel_facts, machine, patched_recorder, probes, tracefs
from syncline.record.errors import NoRouteError, RecordError
from syncline.record.tracer import which

# What is recorded: a command that is started, a process that runs, or all processes.
Target = Literal["command", "process", "machine"]
Name = Literal["ring-buffer", "dynamic-events", "bpftrace", "strace"]
_SHORT_STACKS = (
    "more than eight frames of a user stack, and those of programs without frame pointers: bpftrace is not"
    " installed"
)
# The conditions of a filter that the scripts in bpf/ apply.
_BY_SCRIPT = ("pid", "comm", "device")
NAMES: tuple[Name, ...] = ("ring-buffer", "dynamic-events", "bpftrace", "strace")
# Those that can also record each write.
WITH_WRITES: tuple[Name, ...] = ("dynamic-events", "strace")
# Those that can also record operations on files.
WITH_FILES: tuple[Name, ...] = ("dynamic-events",)


@dataclass(frozen=True)
class Route:
    """A way to record. `why` says why it was chosen, `cannot_see` what it does not record."""

    name: Name
    why: str
    # The bpftrace script of the route. With the ring buffer it records the stacks.
    script: str | None = None
    cannot_see: str = ""
    # The conditions of a filter that it applies. The conversion applies the others.
    filters: tuple[str, ...] = ()


def choose(
    requested: Name | None,
    target: Target,
    failed: dict[Name, RecordError] | None = None,
    root: Path = Path("/"),
) -> Route:
    """Returns the requested route, or the best one that is available.

    Args:
        requested: the only route that is considered; None for all.
        target: what is recorded.
        failed: routes that were tried, and why they do not work.
        root: the folder that holds /sys; tests use another one.

    Raises:
        RecordError: no route, or not the requested one, is available. The message says why.
    """
    found: list[Route] = []
    # The routes that lack something, by what they lack, because the same advice three times reads as three problems.
    lacking: dict[str, list[str]] = {}
    for name in NAMES if requested is None else (requested,):
        try:
            if failed and name in failed:
                raise failed[name]
            found.append(_ROUTES[name](root, target))
            break
        except RecordError as error:
            reason = error.message + (f" ({error.hint})" if error.hint else "")
            lacking.setdefault(reason, []).append(name)
    missing = [f"{', '.join(names)}: {reason}" for reason, names in lacking.items()]
    if not found:
        how = "find out what is missing and how to get it: syncline doctor"
        if requested is not None:
            raise RecordError(missing[0], how)
        each = "".join(f"\n  {printable(one)}" for one in missing)
        raise NoRouteError(f"cannot record on this machine{each}", how)
    if not missing:
        return found[0]
    # A better route is not available: say why.
    return replace(found[0], why=f"{found[0].why}. {'. '.join(missing)}")


def without_program(route: Route) -> Route:
    """Returns a route of the ring buffer that runs no other program, whose log would grow as long as the recording runs."""
    return replace(route, script=None, cannot_see=_SHORT_STACKS)


def _require_tracefs(root: Path) -> Path:
    if os.geteuid() != 0:
        raise RecordError("tracing the kernel needs root", "sudo syncline record ...")
    folder = tracefs.find(root)
    if folder is None:
        raise RecordError(
            "tracefs is not mounted",
            "a container needs --privileged -v /sys/kernel:/sys/kernel"
            if machine.is_container(root)
            else "mount -t tracefs nodev /sys/kernel/tracing",
        )
    return folder


def _ring_buffer(root: Path, _target: Target) -> Route:
    folder = _require_tracefs(root)
    if not patched_recorder.is_patched(folder):
        raise RecordError(
            "this kernel lacks the tracepoints of kernel-patch/, without which the ring buffer does not"
            " record which write belongs to which sync"
        )
    stacks = "stacks" if which("bpftrace") else None
    return Route(
        "ring-buffer",
        "the kernel is patched, and its ring buffer reports every loss",
        stacks,
        "" if stacks else _SHORT_STACKS,
    )


def _dynamic_events(root: Path, _target: Target) -> Route:
    folder = _require_tracefs(root)
    probe_list, _ = probes.load()
    wanted = {name for probe in probe_list for _, name in probe.functions}
    kernel = kernel_facts.read_kernel(folder, wanted, root)
    for probe in probe_list:
        if probe.required and not any(name in kernel.functions for _, name in probe.functions):
            raise RecordError(f"the kernel has no function that shows {probe.gives}")
    stacks = "stacks" if which("bpftrace") else None
    return Route(
        "dynamic-events",
        "probes on the functions of this kernel report to its ring buffer, which reports every loss",
        stacks,
        "" if stacks else _SHORT_STACKS,
    )


def _bpftrace(root: Path, _target: Target) -> Route:
    folder = _require_tracefs(root)
    if which("bpftrace") is None:
        raise RecordError("bpftrace is not installed", "apt install bpftrace")
    if patched_recorder.is_patched(folder):
        return Route(
            "bpftrace", "it was requested, on a patched kernel", "patched", filters=_BY_SCRIPT
        )
    if (root / "sys/kernel/btf/vmlinux").exists():
        return Route(
            "bpftrace",
            "the kernel is not patched and has BTF: probes on kernel functions",
            "stock",
            "full paths, I/O that worker threads submit for a sync, and the commit that a sync waits for",
            _BY_SCRIPT,
        )
    return Route(
        "bpftrace",
        "the kernel is not patched and has no BTF: tracepoints only",
        "stock-tracepoints",
        "which bio belongs to which sync, full paths, and the commit that a sync waits for",
        _BY_SCRIPT,
    )


def _strace(_root: Path, target: Target) -> Route:
    if which("strace") is None:
        raise RecordError("strace is not installed", "apt install strace")
    if target == "machine":
        raise RecordError(
            "it follows one command or one process, and none is named", "add -- CMD or --pid PID"
        )
    if target == "process" and os.geteuid() != 0:
        raise RecordError("only root may attach strace to processes of other users")
    return Route(
        "strace",
        "it works on every kernel",
        None,
        "anything inside the kernel (what was written back, when, and for which sync), syncs by io_uring, and,"
        " without --writes, writes to files that are open with O_SYNC or O_DSYNC",
        # strace attaches to the process.
        ("pid",),
    )


_ROUTES = {
    "ring-buffer": _ring_buffer,
    "dynamic-events": _dynamic_events,
    "bpftrace": _bpftrace,
    "strace": _strace,
}
