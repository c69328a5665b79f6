"""Which route a recording takes, and why: the best one that this machine, this kernel and this user have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from syncline.record import programs, ring_buffer, tracefs
from syncline.record.errors import RecordError

Name = Literal["ring-buffer", "bpftrace", "strace"]
# The parameters of the scripts in bpf/.
_BY_SCRIPT = ("pid", "comm", "device")
NAMES: tuple[Name, ...] = ("ring-buffer", "bpftrace", "strace")


@dataclass(frozen=True)
class Route:
    """A way to record; `why` is for people, `blind` what it cannot see."""

    name: Name
    why: str
    # The bpftrace script of the route; for the ring buffer the one beside it, for the stacks.
    script: str | None = None
    blind: str = ""
    # What it leaves out itself; the rest of a filter is left to the conversion.
    filters: tuple[str, ...] = ()


def choose(wanted: Name | None, has_command: bool) -> Route:
    """The best route there is, or the one that is wanted.

    Raises:
        RecordError: there is none, or the wanted one is not to be had; with the reason.
    """
    found: list[Route] = []
    missing: list[str] = []
    for name in NAMES if wanted is None else (wanted,):
        try:
            found.append(_PROBES[name](has_command))
            break
        except RecordError as error:
            missing.append(f"{name}: {error.message}" + (f" ({error.hint})" if error.hint else ""))
    if not found:
        raise RecordError(
            "no way to record here: " + "; ".join(missing) if wanted is None else missing[0],
            "`syncline doctor` says what is missing and how to get it",
        )
    if not missing:
        return found[0]
    route = found[0]
    return Route(
        route.name, f"{route.why}. {'. '.join(missing)}", route.script, route.blind, route.filters
    )


def _rights() -> Path:
    if os.geteuid() != 0:
        raise RecordError("tracing the kernel needs root", "sudo syncline record ...")
    folder = tracefs.find()
    if folder is None:
        raise RecordError("tracefs is not mounted", "mount -t tracefs nodev /sys/kernel/tracing")
    return folder


def _ring_buffer(_has_command: bool) -> Route:
    folder = _rights()
    if not ring_buffer.is_patched(folder):
        raise RecordError(
            "this kernel lacks the tracepoints of kernel-patch/, without which the ring buffer does not say which write is for which sync"
        )
    stacks = "stacks" if programs.which("bpftrace") else None
    return Route(
        "ring-buffer",
        "the kernel is patched, and its ring buffer loses nothing without saying so",
        stacks,
        "" if stacks else "user stacks: bpftrace is not installed",
    )


def _bpftrace(_has_command: bool) -> Route:
    folder = _rights()
    if programs.which("bpftrace") is None:
        raise RecordError("bpftrace is not installed", "apt install bpftrace")
    if ring_buffer.is_patched(folder):
        return Route("bpftrace", "asked for, on a patched kernel", "patched", filters=_BY_SCRIPT)
    if Path("/sys/kernel/btf/vmlinux").exists():
        return Route(
            "bpftrace",
            "the kernel is not patched, and has BTF: probes at the functions of the kernel",
            "stock",
            "full paths, I/O that workers issue for a sync, and which commit a sync waits for",
            _BY_SCRIPT,
        )
    return Route(
        "bpftrace",
        "the kernel is not patched and has no BTF: tracepoints only",
        "stock-tracepoints",
        "which bio is for which sync, full paths, and which commit a sync waits for",
        _BY_SCRIPT,
    )


def _strace(has_command: bool) -> Route:
    if programs.which("strace") is None:
        raise RecordError("strace is not installed", "apt install strace")
    if not has_command and os.geteuid() != 0:
        raise RecordError("strace may attach to processes of others as root only")
    return Route(
        "strace",
        "it needs no rights",
        None,
        "all that happens in the kernel (what was written back, when, and for whom), and calls by io_uring",
        # It attaches to the process.
        ("pid",),
    )


_PROBES = {"ring-buffer": _ring_buffer, "bpftrace": _bpftrace, "strace": _strace}
