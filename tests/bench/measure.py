"""Measures commands: wall time, CPU time and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LAUNCH = [sys.executable, "-I", "-S", str(Path(__file__).with_name("launch.py"))]


@dataclass
class Cost:
    """The fastest of some runs: wall and CPU seconds, and peak resident memory."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def measure(
    command: list[str],
    times: int,
    stdin: Callable[[], subprocess.Popen] | None = None,
    cwd: Path | None = None,
) -> Cost:
    """Runs a command several times. A pipe discards its output: grep stops early if it writes to /dev/null.

    Raises:
        SystemExit: the command failed.
    """
    runs = [_run(command, stdin, cwd) for _ in range(times)]
    return min(runs, key=lambda run: run.wall_s)


def _run(
    command: list[str], stdin: Callable[[], subprocess.Popen] | None, cwd: Path | None
) -> Cost:
    feeder = stdin() if stdin else None
    read, write = os.pipe()
    sink = subprocess.Popen(["sh", "-c", "cat > /dev/null"], stdin=subprocess.PIPE)
    process = subprocess.Popen(
        [*LAUNCH, str(write), *command],
        stdin=feeder.stdout if feeder else subprocess.DEVNULL,
        stdout=sink.stdin,
        stderr=subprocess.DEVNULL,
        cwd=cwd,
        pass_fds=[write],
    )
    os.close(write)
    if feeder:
        feeder.stdout.close()
    with os.fdopen(read, "rb") as result:
        text = result.read()
    process.wait()
    sink.communicate()
    if feeder:
        feeder.wait()
    if not text:
        raise SystemExit(f"{command[0]} could not be started")
    wall, cpu, peak, code = json.loads(text)
    if code:
        raise SystemExit(f"{' '.join(command)} failed with {code}")
    return Cost(wall, cpu, peak)


def print_run(name: str, run: Cost, note: str = "") -> None:
    print(
        f"{name:44} {run.wall_s:8.3f} s wall {run.cpu_s:8.3f} s CPU {run.peak_bytes / 1e6:8.1f} MB  {note}",
        flush=True,
    )
