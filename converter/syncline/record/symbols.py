"""Resolves addresses in stacks that bpftrace could not resolve, because the process had exited.

It is done at the end of the recording, while the program files still exist.
"""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from syncline.record import native
from syncline.record.processes import Maps, Tasks


@dataclass
class Resolved:
    """The number of unresolved addresses, and of how many the function or only the file is known now."""

    addresses: int = 0
    functions: int = 0
    files: int = 0


def write(file: Path, logs: list[Path], maps: Maps, tasks: Tasks) -> Resolved:
    """Writes `[pid, address, "function+offset (file)"]` for the unresolved addresses in logs."""
    addresses: set[tuple[int, int]] = set()
    counts = Resolved()
    processes = tasks.processes()
    for tid, comm, unresolved in native.unresolved_addresses(logs):
        counts.addresses += len(unresolved)
        pid = processes.get(tid)
        # After an exec, the recorded maps are those of another program.
        if pid is not None and maps.has_comm(pid, comm):
            addresses |= {(pid, address) for address in unresolved}
    by_file: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for pid, address in sorted(addresses):
        mapped = maps.find(pid, address)
        if mapped is not None:
            by_file[mapped.file].append((pid, address, address - mapped.start + mapped.offset))
    frames: list[tuple[int, int, str]] = []
    for name, places in by_file.items():
        with contextlib.suppress(OSError):
            found = native.functions_at(name, [offset for *_, offset in places])
            for (pid, address, _), function in zip(places, found):
                frames.append((pid, address, f"{function or '[unknown]'} ({name})"))
                counts.functions += function is not None
                counts.files += function is None
    if frames:
        file.write_text(json.dumps(frames, separators=(",", ":")) + "\n")
    return counts
