"""Names for the addresses that bpftrace could not look up, since the process had gone; found while its programs are still there."""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from syncline import _core
from syncline.record.machine import Maps, Tasks


@dataclass
class Named:
    """How many addresses, by process, there were, and of how many the function or only the file is known now."""

    addresses: int = 0
    functions: int = 0
    files: int = 0


def write(file: Path, logs: list[Path], maps: Maps, tasks: Tasks) -> Named:
    """Writes `[pid, address, "function+offset (file)"]` for what the logs' stacks lack."""
    wanted: set[tuple[int, int]] = set()
    done = Named()
    processes = tasks.processes()
    with contextlib.suppress(_core.CoreError):
        for tid, comm, addresses in _core.unresolved_addresses([str(log) for log in logs]):
            done.addresses += len(addresses)
            pid = processes.get(tid)
            # A process that has become another program meanwhile has other maps.
            if pid is not None and maps.had(pid, comm):
                wanted |= {(pid, address) for address in addresses}
    in_files: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for pid, address in sorted(wanted):
        mapped = maps.find(pid, address)
        if mapped is not None:
            in_files[mapped.file].append((pid, address, address - mapped.start + mapped.offset))
    frames: list[tuple[int, int, str]] = []
    for name, places in in_files.items():
        with contextlib.suppress(OSError):
            found = _core.functions_at(name, [offset for *_, offset in places])
            for (pid, address, _), function in zip(places, found, strict=True):
                frames.append((pid, address, f"{function or '[unknown]'} ({name})"))
                done.functions += function is not None
                done.files += function is None
    if frames:
        file.write_text(json.dumps(frames, separators=(",", ":")) + "\n")
    return done
