"""Checks of `syncline doctor`: the kernel, the privileges and the programs that recording needs."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from syncline.finding import Finding, Probe
from syncline.record import mounts, routes, tracefs
from syncline.record.errors import RecordError
from syncline.record.probe_group import ProbeGroup

# The tracepoints that kernel-patch/ adds.
PATCHED_EVENTS = ("sync_start", "bio_add_folio", "bio_submit", "bio_complete", "sync_end")
# Time limit for a program to print its version.
VERSION_WITHIN_S = 10.0
_CAP_SYS_ADMIN, _CAP_PERFMON, _CAP_BPF = 21, 38, 39


def kernel(_root: Path) -> Finding:
    """Reports the running kernel."""
    return Finding("ok", f"{platform.system()} {platform.release()} {platform.machine()}")


def privileges(root: Path) -> Finding:
    """Checks whether the user may trace the kernel."""
    held = _capabilities(root)
    who = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    if _CAP_SYS_ADMIN in held:
        return Finding("ok", f"{who}, CAP_SYS_ADMIN")
    if {_CAP_BPF, _CAP_PERFMON} <= held:
        return Finding("ok", f"{who}, CAP_BPF and CAP_PERFMON")
    return Finding(
        "warn", f"{who}: may not trace the kernel", "Record with: sudo syncline record -- CMD"
    )


def _capabilities(root: Path) -> set[int]:
    status = (root / "proc/self/status").read_text()
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    mask = int(found.group(1), 16) if found else 0
    return {bit for bit in range(64) if mask >> bit & 1}


def tracefs_mount(root: Path) -> Finding:
    """Checks whether tracefs is mounted and readable."""
    folder = tracefs.find(root, "events")
    if folder is None:
        mounts = (root / "proc/mounts").read_text()
        if re.search(r"^\S+ \S+ tracefs ", mounts, re.MULTILINE):
            return Finding("warn", "mounted, but not readable", "Run as root: sudo syncline doctor")
        return Finding("missing", "not mounted", "mount -t tracefs nodev /sys/kernel/tracing")
    if not os.access(folder / "events", os.R_OK | os.X_OK):
        return Finding("warn", f"{folder}: not readable", "Run as root: sudo syncline doctor")
    return Finding("ok", str(folder))


def patched_tracepoints(root: Path) -> Finding:
    """Checks whether the kernel has the tracepoints of kernel-patch/."""
    folder = tracefs.find(root, "events")
    if folder is None:
        return Finding("warn", "unknown without tracefs", "See tracefs above.")
    found = {name: sorted(folder.glob(f"events/*/{name}")) for name in PATCHED_EVENTS}
    present = [name for name, folders in found.items() if folders]
    absent = [name for name, folders in found.items() if not folders]
    # Other systems (jbd2, block) may have events with the other names.
    if not found["sync_start"]:
        return Finding(
            "missing",
            "a kernel without Syncline's patch",
            "Recording uses probes instead if it can. To develop a file system, build a patched kernel (kernel-patch/).",
        )
    system = found["sync_start"][0].parent.name
    if absent:
        return Finding(
            "warn",
            f"{system}: {', '.join(present)}; not {', '.join(absent)}",
            "Apply the current patch for this kernel (kernel-patch/).",
        )
    return Finding("ok", f"{system}: {', '.join(present)}")


def probes(root: Path) -> Finding:
    """Reports which functions the route `dynamic-events` would probe, and what it would not record."""
    folder = tracefs.find(root, "events")
    if folder is None:
        return Finding("warn", "unknown without tracefs", "See tracefs above.")
    group = ProbeGroup(folder)
    mountinfo = root / "proc/self/mountinfo"
    mounted = mountinfo.read_text(errors="replace") if mountinfo.is_file() else ""
    try:
        report = group.plan(mounts.types(mounted), root)
    except RecordError as error:
        otherwise = "Without probes, recording uses bpftrace: apt install bpftrace"
        return Finding("missing", error.message, error.hint or otherwise)
    functions = "; ".join(
        f"{event}: {', '.join(function for function, _ in pairs)}"
        for event, pairs in report.probed.items()
    )
    detail = f"{group.summary()} ({functions})"
    if not report.unavailable and not report.missing_fields and not report.gaps:
        return Finding("ok", detail)
    reasons = {f"{event}: {why}" for event, why in report.unavailable.items()}
    reasons |= set(report.gap_texts())
    for event, fields in report.missing_fields.items():
        reasons |= {f"{event}.{name}: {why}" for name, why in fields.items()}
    return Finding("warn", detail, "; ".join(sorted(reasons)))


def btf(root: Path) -> Finding:
    """Checks whether the kernel has BTF."""
    file = root / "sys/kernel/btf/vmlinux"
    if file.is_file():
        return Finding("ok", "/sys/kernel/btf/vmlinux")
    return Finding(
        "missing",
        "no /sys/kernel/btf/vmlinux",
        "The fentry probes of bpftrace need a kernel with CONFIG_DEBUG_INFO_BTF. Recording uses tracepoints.",
    )


def route(root: Path) -> Finding:
    """Says which route `syncline record -- CMD` takes, and what it does not record."""
    try:
        chosen = routes.choose(None, "command", root=root)
    except RecordError as error:
        return Finding("missing", error.message, "Install a recorder that is missing below.")
    text = f"{chosen.name}: {chosen.why}"
    if chosen.cannot_see:
        text += f". The route {chosen.name} cannot see {chosen.cannot_see}"
    if chosen.name != "strace":
        return Finding("ok", text)
    return Finding(
        "warn",
        text,
        "The other routes see more, and need what is named here. perf, where it may trace, records bios too: see"
        " docs/guides/first-recording.md.",
    )


def lockdown(root: Path) -> Finding:
    """Checks whether the kernel is locked down."""
    try:
        text = (root / "sys/kernel/security/lockdown").read_text().strip()
    except FileNotFoundError:
        return Finding("ok", "not in this kernel")
    mode = re.search(r"\[(\w+)\]", text)
    if mode and mode.group(1) == "none":
        return Finding("ok", "none")
    return Finding(
        "warn",
        mode.group(1) if mode else text,
        "A locked-down kernel rejects tracing: turn Secure Boot off, or boot without lockdown=.",
    )


def perf_event_paranoid(root: Path) -> Finding:
    """Checks whether users may trace with perf events."""
    level = (root / "proc/sys/kernel/perf_event_paranoid").read_text().strip()
    if int(level) <= 1 or _CAP_PERFMON in _capabilities(root):
        return Finding("ok", level)
    return Finding(
        "warn", f"{level}: users may not trace", "sysctl kernel.perf_event_paranoid=1, or sudo"
    )


def program(name: str) -> Probe:
    """Returns a check of the version of a program."""

    def probe(_root: Path) -> Finding:
        path = shutil.which(name)
        if path is None:
            return Finding("missing", "not on PATH", f"apt install {name}   (or dnf, pacman)")
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
            return Finding("warn", f"{path}: does not report its version", f"Try: {name} --version")
        if name == "bpftrace" and _numbers(version.group()) < (0, 18):
            return Finding(
                "warn",
                f"{version.group()} ({path})",
                "It aborts if a traced process exits before its stack is symbolised: use 0.18 or later.",
            )
        return Finding("ok", f"{version.group()} ({path})")

    return probe


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
