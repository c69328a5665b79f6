"""Checks of `syncline doctor`: the kernel, the privileges and the programs that recording needs."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from syncline.health import Checker, Health
from syncline.record import mounts, routes, tracefs
from syncline.record.errors import RecordError
from syncline.record.probe_group import ProbeGroup
from syncline.record.tracefs_mount import is_left_behind

# The tracepoints that kernel-patch/ adds.
PATCHED_EVENTS = ("sync_start", "bio_add_folio", "bio_submit", "bio_complete", "sync_end")
# Time limit for a program to print its version.
VERSION_WITHIN_S = 10.0
_CAP_SYS_ADMIN, _CAP_PERFMON, _CAP_BPF = 21, 38, 39


def kernel(_root: Path) -> Health:
    """Reports the running kernel."""
    return Health("ok", f"{platform.system()} {platform.release()} {platform.machine()}")


def privileges(root: Path) -> Health:
    """Checks whether the user may trace the kernel."""
    held = _capabilities(root)
    who = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    if _CAP_SYS_ADMIN in held:
        return Health("ok", f"{who}, CAP_SYS_ADMIN")
    if {_CAP_BPF, _CAP_PERFMON} <= held:
        return Health("ok", f"{who}, CAP_BPF and CAP_PERFMON")
    return Health(
        "warn", f"{who}: may not trace the kernel", "Record with: sudo syncline record -- CMD"
    )


def _capabilities(root: Path) -> set[int]:
    status = (root / "proc/self/status").read_text()
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    mask = int(found.group(1), 16) if found else 0
    return {bit for bit in range(64) if mask >> bit & 1}


def tracefs_mount(root: Path) -> Health:
    """Checks whether tracefs is mounted and readable."""
    folder = tracefs.find(root, "events")
    if folder is None:
        mounts = (root / "proc/mounts").read_text()
        if re.search(r"^\S+ \S+ tracefs ", mounts, re.MULTILINE):
            return Health("warn", "mounted, but not readable", "Run as root: sudo syncline doctor")
        return Health(
            "missing",
            "not mounted",
            "`sudo syncline record` mounts it while it records. To keep it: mount -t tracefs nodev /sys/kernel/tracing",
        )
    if not os.access(folder / "events", os.R_OK | os.X_OK):
        return Health("warn", f"{folder}: not readable", "Run as root: sudo syncline doctor")
    if is_left_behind(root):
        return Health(
            "warn",
            f"{folder}: left behind by a recording that was killed",
            f"The next `sudo syncline record` unmounts it. To do so now: umount {folder}",
        )
    return Health("ok", str(folder))


def patched_tracepoints(root: Path) -> Health:
    """Checks whether the kernel has the tracepoints of kernel-patch/."""
    folder = tracefs.find(root, "events")
    if folder is None:
        return Health("warn", "unknown without tracefs", "See tracefs above.")
    found = {name: sorted(folder.glob(f"events/*/{name}")) for name in PATCHED_EVENTS}
    present = [name for name, folders in found.items() if folders]
    absent = [name for name, folders in found.items() if not folders]
    # Other systems (jbd2, block) may have events with the other names.
    if not found["sync_start"]:
        return Health(
            "missing",
            "a kernel without Syncline's patch",
            "Recording uses probes instead if it can. To develop a file system, build a patched kernel (kernel-patch/).",
        )
    system = found["sync_start"][0].parent.name
    if absent:
        return Health(
            "warn",
            f"{system}: {', '.join(present)}; not {', '.join(absent)}",
            "Apply the current patch for this kernel (kernel-patch/).",
        )
    return Health("ok", f"{system}: {', '.join(present)}")


def probes(root: Path) -> Health:
    """Reports which functions the route `dynamic-events` would probe, and what it would not record."""
    folder = tracefs.find(root, "events")
    if folder is None:
        return Health("warn", "unknown without tracefs", "See tracefs above.")
    group = ProbeGroup(folder)
    mountinfo = root / "proc/self/mountinfo"
    mounted = mountinfo.read_text(errors="replace") if mountinfo.is_file() else ""
    try:
        report = group.plan(mounts.types(mounted), root)
    except RecordError as error:
        otherwise = "Without probes, recording uses bpftrace: apt install bpftrace"
        return Health("missing", error.message, error.hint or otherwise)
    functions = "; ".join(
        f"{event}: {', '.join(function for function, _ in pairs)}"
        for event, pairs in report.probed.items()
    )
    detail = f"{group.summary()} ({functions})"
    if not report.unavailable and not report.missing_fields and not report.gaps:
        return Health("ok", detail)
    reasons = {f"{event}: {why}" for event, why in report.unavailable.items()}
    reasons |= set(report.gap_texts())
    for event, fields in report.missing_fields.items():
        reasons |= {f"{event}.{name}: {why}" for name, why in fields.items()}
    return Health("warn", detail, "; ".join(sorted(reasons)))


def btf(root: Path) -> Health:
    """Checks whether the kernel has BTF."""
    file = root / "sys/kernel/btf/vmlinux"
    if file.is_file():
        return Health("ok", "/sys/kernel/btf/vmlinux")
    return Health(
        "missing",
        "no /sys/kernel/btf/vmlinux",
        "The fentry probes of bpftrace need a kernel with CONFIG_DEBUG_INFO_BTF. Recording uses tracepoints.",
    )


def route(root: Path) -> Health:
    """Says which route `syncline record -- CMD` takes, and what it does not record."""
    try:
        chosen = routes.choose(None, "command", root=root)
    except RecordError as error:
        return Health("missing", error.message, "Install a recorder that is missing below.")
    text = f"{chosen.name}: {chosen.why}"
    if chosen.cannot_see:
        text += f". The route {chosen.name} cannot see {chosen.cannot_see}"
    if chosen.name != "strace":
        return Health("ok", text)
    return Health(
        "warn",
        text,
        "The other routes see more, and need what is named here. perf, where it may trace, records bios too: see"
        " docs/guides/first-recording.md.",
    )


def lockdown(root: Path) -> Health:
    """Checks whether the kernel is locked down."""
    try:
        text = (root / "sys/kernel/security/lockdown").read_text().strip()
    except FileNotFoundError:
        return Health("ok", "not in this kernel")
    mode = re.search(r"\[(\w+)\]", text)
    if mode and mode.group(1) == "none":
        return Health("ok", "none")
    return Health(
        "warn",
        mode.group(1) if mode else text,
        "A locked-down kernel rejects tracing: turn Secure Boot off, or boot without lockdown=.",
    )


def perf_event_paranoid(root: Path) -> Health:
    """Checks whether users may trace with perf events."""
    level = (root / "proc/sys/kernel/perf_event_paranoid").read_text().strip()
    if int(level) <= 1 or _CAP_PERFMON in _capabilities(root):
        return Health("ok", level)
    return Health(
        "warn", f"{level}: users may not trace", "sysctl kernel.perf_event_paranoid=1, or sudo"
    )


def program(name: str) -> Checker:
    """Returns a check of the version of a program."""

    def check(_root: Path) -> Health:
        path = shutil.which(name)
        if path is None:
            return Health("missing", "not on PATH", f"apt install {name}   (or dnf, pacman)")
        done = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_WITHIN_S,
        )
        version = re.search(r"\d+\.\d+[\w.+-]*", done.stdout + done.stderr)
        if version is None:
            return Health("warn", f"{path}: does not report its version", f"Try: {name} --version")
        if name == "bpftrace" and _numbers(version.group()) < (0, 18):
            return Health(
                "warn",
                f"{version.group()} ({path})",
                "It aborts if a traced process exits before its stack is symbolised: use 0.18 or later.",
            )
        return Health("ok", f"{version.group()} ({path})")

    return check


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
