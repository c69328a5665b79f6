"""Facts of the machine that are needed to read a recording elsewhere: kernel, clocks, mounts, devices."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from pathlib import Path
from typing import Any

# Number of times that the offset between two clocks is measured.
_TRIES = 9


def is_container(root: Path = Path("/")) -> bool:
    """Returns whether this is a container of Docker, Podman or Kubernetes.

    Args:
        root: the folder that holds the marks of the first two; tests use another one.
    """
    marks = (".dockerenv", "run/.containerenv")
    return "KUBERNETES_SERVICE_HOST" in os.environ or any((root / mark).exists() for mark in marks)


def describe() -> dict[str, Any]:
    """Returns kernel, host and clocks, for the manifest."""
    boot_id = _text("/proc/sys/kernel/random/boot_id")
    return {
        "kernel": platform.release(),
        "kernel_version": platform.version(),
        "machine": platform.machine(),
        "host": platform.node(),
        "boot_id": boot_id,
        "command_line": _text("/proc/cmdline"),
        "clocks_ns": clocks(),
    }


def clocks() -> dict[str, int]:
    """Returns the times of all clocks at one moment in ns, by which recordings can be joined.

    A busy machine may interrupt the reader between two clocks, so the shortest of several
    measurements is used.
    """
    others = {"monotonic": time.CLOCK_MONOTONIC, "realtime": time.CLOCK_REALTIME}
    found = {"boottime": time.clock_gettime_ns(time.CLOCK_BOOTTIME)}
    for name, clock in others.items():
        tries = []
        for _ in range(_TRIES):
            before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            now = time.clock_gettime_ns(clock)
            after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            tries.append((after - before, now - (before + after) // 2))
        found[name] = found["boottime"] + min(tries)[1]
    return found


def devices() -> dict[str, dict[str, Any]]:
    """Returns block devices by `major:minor`: name, model, lower devices, and queue settings."""
    found = {}
    for link in sorted(Path("/sys/dev/block").glob("*:*")):
        device = link.resolve()
        partition = _number(device / "partition")
        # The folder of a partition is in that of its disk.
        disk = device if partition is None else device.parent
        queue = disk / "queue"
        lower = {path.name for path in device.glob("slaves/*")}
        if partition is not None:
            lower.add(disk.name)
        found[link.name] = {
            "name": device.name,
            "size_sectors": _number(device / "size"),
            "model": _text(device / "device" / "model"),
            "partition": partition,
            "on": sorted(lower),
            "rotational": _number(queue / "rotational"),
            "write_cache": _text(queue / "write_cache"),
            "fua": _number(queue / "fua"),
            "scheduler": _text(queue / "scheduler"),
            "nr_requests": _number(queue / "nr_requests"),
            "hardware_queues": len(list((queue.parent / "mq").glob("*"))) or None,
            "wbt_lat_usec": _number(queue / "wbt_lat_usec"),
        }
    return found


def mounts() -> str:
    """Returns /proc/self/mountinfo: mount points, file systems and their options."""
    return _text("/proc/self/mountinfo") + "\n"


def _text(path: str | Path) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(errors="replace").strip()
    return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.lstrip("-").isdigit() else None
