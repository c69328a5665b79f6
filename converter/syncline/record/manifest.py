"""What a run directory says of a recording besides its logs: the manifest and the tables next to it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from syncline.record import machine, symbols
from syncline.record.recorders import Recorders, Say
from syncline.record.request import Request
from syncline.record.routes import Route
from syncline.record.run_folder import RunFolder
from syncline.record.watch import Scanner
from syncline.run_directory import LIMITS, MANIFEST, SYMBOLS, TASKS

SCHEMA_VERSION = 1
_SUSPENDED_NS = 10**8


def begin(folder: Path, request: Request, route: Route) -> dict[str, Any]:
    """Returns the manifest as far as it is known at the start, and writes what the machine is."""
    (folder / "mountinfo").write_text(machine.mounts())
    (folder / "devices.json").write_text(json.dumps(machine.devices(), indent=2) + "\n")
    return {
        "schema_version": SCHEMA_VERSION,
        "syncline_version": metadata.version("syncline"),
        "route": route.name,
        "why": route.why,
        "cannot_see": route.cannot_see,
        "command": request.command,
        "filter": asdict(request.filter),
        "filter_at_conversion": asdict(replace(request.filter, **dict.fromkeys(route.filters))),
        "before": machine.describe(),
    }


def write_tables(folder: Path, recorders: Recorders, scanner: Scanner, say: Say) -> None:
    """Writes the threads, control groups, memory maps and symbols of the recorded processes."""
    scanner.maps.write(folder / "maps")
    scanner.tasks.limits.write(folder / LIMITS)
    scanner.tasks.write(folder / TASKS, recorders.ring.comms if recorders.ring is not None else {})
    resolved = symbols.write(folder / SYMBOLS, recorders.stack_logs, scanner.maps, scanner.tasks)
    if unnamed := resolved.addresses - resolved.functions:
        say(
            f"{unnamed} addresses in stacks have no function name: install the debug symbols of their programs, and let"
            " the programs run until the recording ends"
        )


def write(folder: RunFolder, manifest: dict[str, Any]) -> None:
    """Writes the manifest, which comes last: a folder without one is no recording."""
    text = json.dumps(manifest, indent=2) + "\n"
    folder.write(MANIFEST, text.replace(f"{folder.path}/", ""))


def hand_over(folder: RunFolder, say: Say) -> None:
    """Gives the folder to the user who has called sudo."""
    try:
        folder.hand_over()
    except OSError as error:
        say(
            f"warning: {folder.name} belongs to root, and cannot be given to the user who called sudo:"
            f" {error.strerror}"
        )


def check_clocks(manifest: dict[str, Any], say: Say) -> None:
    """Warns if the machine was restarted or suspended during the recording."""
    before, after = manifest["before"], manifest["after"]
    if before["boot_id"] != after["boot_id"]:
        say("warning: the machine was restarted during the recording")
    a, b = before["clocks_ns"], after["clocks_ns"]
    # CLOCK_BOOTTIME includes suspend, CLOCK_MONOTONIC does not.
    suspended = int((b["boottime"] - a["boottime"]) - (b["monotonic"] - a["monotonic"]))
    manifest["suspended_ns"] = suspended
    if suspended > _SUSPENDED_NS:
        say(
            f"warning: the machine was suspended for {suspended / 1e9:.1f} s, which makes syncs of that"
            " time look long"
        )
