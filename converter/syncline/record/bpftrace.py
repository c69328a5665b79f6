"""bpftrace, and the choice of our script for its version and for this kernel."""

from __future__ import annotations

import contextlib
import re
import subprocess
from pathlib import Path

from syncline.folders import folder
from syncline.record.errors import RecordError
from syncline.record.tracer import Tracer, which
from syncline.run_directory import Filter


def bpf_root() -> Path:
    """Returns the folder with the bpftrace scripts, of the package or of the checkout."""
    return folder("bpf", "stacks.bt")


def start_script(name: str, request: Filter, log: Path) -> Tracer:
    """Starts bpftrace with a script and waits until its probes are attached.

    Args:
        name: the script without its ending.
        request: the filter. The script applies pid, comm and device.
        log: where the events go.

    Raises:
        RecordError: the script does not exist, or bpftrace fails.
    """
    program = which("bpftrace") or "bpftrace"
    path = script(name, bpftrace_version(program))
    if not path.is_file():
        raise RecordError(
            f"the script {path.name} is missing", "install Syncline again; see `syncline doctor`"
        )
    path = fit_to_kernel(path, log.parent)
    arguments = [str(request.pid or 0), request.comm or "", str(request.device or 0)]
    tracer = Tracer("bpftrace", [program, "-q", str(path), *arguments], log)
    try:
        tracer.wait_until_attached()
    except BaseException:
        tracer.kill()
        raise
    return tracer


def bpftrace_version(program: str) -> tuple[int, int] | None:
    """Returns major and minor version; None if the program does not report them."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=30, check=False
        )
        found = re.search(r"v?(\d+)\.(\d+)", done.stdout + done.stderr)
        if found:
            return int(found[1]), int(found[2])
    return None


def script(name: str, version: tuple[int, int] | None) -> Path:
    """Returns the variant of a script for a version of bpftrace."""
    old = bpf_root() / f"{name}-0.17.bt"
    if version is not None and version < (0, 20) and old.is_file():
        return old
    return bpf_root() / f"{name}.bt"


def fit_to_kernel(path: Path, folder: Path) -> Path:
    """Returns a script whose optional probes are enabled where this kernel has the events.

    A script with optional probes is copied to `folder`.

    Raises:
        RecordError: tracefs cannot be read.
    """
    if "\n// if " not in path.read_text():
        return path
    done = subprocess.run(
        ["sh", str(path.with_name("fit.sh")), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RecordError(f"{path.name} cannot be fitted to this kernel: {done.stderr.strip()}")
    fitted = folder / path.name
    fitted.write_text(done.stdout)
    return fitted
