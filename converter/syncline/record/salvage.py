"""Makes a recording of what a killed recorder has left: pages that were copied until a moment before, without trace.dat and manifest."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from syncline.record import trace_dat
from syncline.record.errors import RecordError
from syncline.record.tracefs import is_running
from syncline.run_directory import LEFT, MANIFEST

# Until when the pages are complete; the manifest as far as it is known at the start.
STATE, BEGUN = ".state.json", ".manifest.json"
_KILLED = "the recorder was killed"


def salvage(folder: Path, why: str = _KILLED) -> dict[str, Any]:
    """Writes trace.dat and the manifest, removes the pages, and returns the manifest. `why` says how the recording ended.

    Raises:
        RecordError: it is a recording already, it is still recorded, or nothing was left.
    """
    if (folder / MANIFEST).exists():
        raise RecordError(f"{folder} is a whole recording", f"syncline report {folder}")
    if not (folder / LEFT).is_file():
        raise RecordError(
            f"{folder} holds nothing that a recorder has left",
            "name the folder of the recording that was killed; the routes bpftrace and strace leave a log, which `report` takes",
        )
    with _damage(folder):
        facts = json.loads((folder / LEFT).read_text())
        pid, start = facts["owner"]
        if is_running(int(pid), str(start)) and int(pid) != os.getpid():
            raise RecordError(
                f"{folder} is still recorded, by process {pid}", f"end it: kill -INT {pid}"
            )
        manifest = json.loads((folder / BEGUN).read_text())
        known_until_ns = _write_trace_dat(folder, facts)
        manifest |= {
            "ended_by": f"failure: {why}",
            "exit_code": None,
            "inputs": [
                {
                    "file": "trace.dat",
                    "source": "trace-dat",
                    "events": facts["events"],
                    "failure": why,
                    "known_until_ns": known_until_ns,
                }
            ],
        }
        _end(folder, manifest)
    return manifest


def complete(folder: Path, manifest: dict[str, Any]) -> None:
    """Writes trace.dat of the pages of a recording that ended as it should, and its manifest.

    Raises:
        RecordError: something is missing.
    """
    with _damage(folder):
        _write_trace_dat(folder, json.loads((folder / LEFT).read_text()))
        _end(folder, manifest)


def _write_trace_dat(folder: Path, facts: dict[str, Any]) -> Any:
    """Writes it, and returns until when it is complete."""
    state = json.loads((folder / STATE).read_text().partition("\n")[0])
    buffers = {
        name: [_member(folder, file) for file in files] for name, files in facts["buffers"].items()
    }
    stats = {int(cpu): numbers for cpu, numbers in state["stats"].items()}
    trace_dat.write(
        folder / "trace.dat",
        **facts["trace_dat"],
        comms={int(tid): name for tid, name in state["comms"].items()},
        stats=trace_dat.stats_texts(stats),
        pages=buffers.pop(""),
        buffers=buffers,
    )
    return state["known_until_ns"]


def _end(folder: Path, manifest: dict[str, Any]) -> None:
    part = folder / f".{MANIFEST}.part"
    part.write_text(json.dumps(manifest, indent=2) + "\n")
    part.replace(folder / MANIFEST)
    for file in (LEFT, STATE, BEGUN, *(file.name for file in folder.glob(".*.pages"))):
        (folder / file).unlink(missing_ok=True)


@contextlib.contextmanager
def _damage(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RecordError(
            f"cannot salvage {folder}: {(error.strerror or str(error)).lower()}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(
            f"what the recorder has left in {folder} is damaged: {error}",
            "it was killed in its first two seconds, or its disk was full",
        ) from None


def _member(folder: Path, name: str) -> Path:
    if Path(name).name != name:
        raise ValueError(f"{name} is no file of it")
    return folder / name
