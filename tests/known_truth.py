"""Recordings whose truth the set-up forces: tests/data/known-truth/. `python -m tests.known_truth OUT` packs those of a guest.

An archive has the run directories of several cases of tests/kernel/known-truth.tsv, each with truth.json.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from syncline.reading import Reading

from tests.coretools import Rows, tables

DATA = Path(__file__).parent / "data" / "known-truth"
# Recordings of one archive share their descriptions of events, so together they pack to half the size.
ARCHIVES = {
    "patched": ("*-patched",),
    "delay": ("delay-*", "null-*", "four-*"),
    "file-systems": ("syncs-*",),
    "queue": ("queue-*", "neighbour-*"),
    "commit": ("forced-*", "group-*"),
    "start": ("commit-*", "fast-commit", "busy"),
    "cache": ("cache*", "no-*", "fua-*", "flush-*", "direct-*"),
    "advice": ("empty*", "*-in-place", "small-*", "rebuildable", "rename-*"),
    "write": ("cold-*", "blocked-*", "error"),
    "slow-write": ("write-*",),
    "postgres": ("postgres*",),
    "stacked": ("stacked",),
}
# What no conversion reads.
LEFT_OUT = ("maps", "trace.pftrace")


def archive_of(case: str) -> Path:
    """Returns the archive that holds a case. The first pattern that matches it counts."""
    for name, patterns in ARCHIVES.items():
        if any(Path(case).match(pattern) for pattern in patterns):
            return DATA / f"{name}.tar.xz"
    raise ValueError(f"no archive for {case}: add it to ARCHIVES")


@cache
def _members(archive: Path) -> dict[str, dict[str, bytes]]:
    """Files of an archive by case and name."""
    cases: dict[str, dict[str, bytes]] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            case, _, name = member.name.partition("/")
            file = tar.extractfile(member)
            assert file is not None
            cases.setdefault(case, {})[name] = file.read()
    return cases


def names() -> list[str]:
    """The cases, sorted."""
    return sorted(case for path in DATA.glob("*.tar.xz") for case in _members(path))


def unpacked(case: str, folder: Path) -> Path:
    """Writes the run directory of a case into `folder` and returns its path."""
    run = folder / case
    run.mkdir()
    for name, content in _members(archive_of(case))[case].items():
        (run / name).write_bytes(content)
    return run


@dataclass(frozen=True)
class Case:
    """A recording, converted: its truth, its tables and its manifest."""

    run: Path
    truth: dict[str, Any]
    tables: dict[str, Rows]
    manifest: dict[str, Any]

    @cached_property
    def events(self) -> Rows:
        """Its events in the order of time. They are read when a test asks: some have ten thousand."""
        output = self.run.with_name(f"{self.run.name}.events.jsonl")
        Reading().convert([str(self.run)], str(output))
        return [json.loads(line) for line in output.read_text().splitlines()]


def converted(case: str, folder: Path) -> Case:
    """Converts a case in `folder`, which must stay while its events are not read."""
    run = unpacked(case, folder)
    Reading().convert([str(run)], f"{folder}/{case}.tables/")
    truth, manifest = (
        json.loads((run / f"{name}.json").read_text()) for name in ("truth", "manifest")
    )
    return Case(run, truth, tables(folder / f"{case}.tables"), manifest)


def pack(recorded: Path) -> None:
    """Packs the recordings of tests/kernel/jobs/known-truth.sh. The same files give the same bytes."""
    runs: dict[Path, list[Path]] = {}
    for run in sorted(path.parent for path in recorded.glob("*/truth.json")):
        runs.setdefault(archive_of(run.name), []).append(run)
    DATA.mkdir(exist_ok=True)
    for archive, folders in runs.items():
        with tarfile.open(archive, "w:xz", preset=9, format=tarfile.PAX_FORMAT) as tar:
            for run in folders:
                for path in sorted(run.iterdir()):
                    if path.name not in LEFT_OUT:
                        member = tarfile.TarInfo(f"{run.name}/{path.name}")
                        content = path.read_bytes()
                        member.size = len(content)
                        tar.addfile(member, io.BytesIO(content))
        print(f"{archive.name}: {len(folders)} cases, {archive.stat().st_size} bytes")


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
