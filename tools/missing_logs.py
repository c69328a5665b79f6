"""Writes the low-level logs of binary recordings to tests/data/missing: `python -m tools.missing_logs`."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

from syncline import _core

from tests.known_truth import unpacked
from tests.missing.recordings import DATA, Event, low_level, settled, split

# Name: the file, or the case of known-truth; the first event that is used; how many.
FILES = {
    "trace-dat": ("dynamic-events/ext4.dat.gz", 12, 170),
    "trace-dat-stacked": ("stacked", 23, 110),
    "trace-dat-patched": ("delay-patched", 2810, 74),
    "trace-dat-xfs": ("cache-fua-xfs", 2910, 40),
    "trace-dat-fast-commit": ("fast-commit", 1223, 78),
    "trace-dat-timer": ("commit-timer", 3016, 106),
    "trace-dat-btrfs": ("syncs-btrfs", 3212, 78),
    "trace-dat-f2fs": ("syncs-f2fs", 2849, 50),
    "trace-dat-sync": ("forced-sync", 461, 470),
    "trace-dat-syncfs": ("forced-syncfs", 473, 120),
    "trace-dat-freeze": ("forced-freeze", 605, 160),
    "perf-data": ("perf/stacks.data.gz", 0, 102),
    "blktrace": ("blktrace/small1.blktrace.0", 0, 58),
}


def of_syncs(events: list[Event]) -> list[Event]:
    """Without what threads that never sync do on the CPUs."""
    syncing = {event.tid for event in events if event.kind in ("start", "call entry")}
    kept = []
    for event in events:
        if event.kind in ("switch", "wakeup"):
            fields = json.loads(event.text)
            if not syncing & {fields.get(key) for key in ("prev_pid", "next_pid", "data_pid")}:
                continue
        kept.append(event)
    return kept


def main() -> None:
    """Writes all."""
    for name, (path, first, count) in FILES.items():
        with tempfile.TemporaryDirectory() as folder:
            source = DATA / path if "/" in path else unpacked(path, Path(folder)) / "trace.dat"
            out = Path(folder) / "x.events.jsonl"
            _core.convert([str(source)], str(out))
            head, events, tail = split(low_level, out.read_bytes())
        kept = settled(of_syncs(events)[first:], count)
        text = head + b"".join(event.text for event in kept) + tail
        (DATA / "missing" / f"{name}.events.jsonl.gz").write_bytes(gzip.compress(text, mtime=0))


if __name__ == "__main__":
    main()
