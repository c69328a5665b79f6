"""Cuts recordings into pieces that overlap, and compares their tables with those of the whole recording.

    python -m tests.cut_logs COUNT [SEED]

prints how many of COUNT random cuts give other rows, by recording, and an example of each fault.
"""

from __future__ import annotations

import gzip
import itertools
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from syncline import _core
from syncline.recordings import InputHints

from tests import once

DATA = Path(__file__).parent / "data"
TABLES = ("sync", "bio", "call")
# Numbers that rows get in the order of their events, and what other tables say by them.
NUMBERS = {"sync_id", "call_sync_id", "bio_id", "call_id", "commit_id"}

Row = dict[str, Any]
Tables = dict[str, list[Row]]


@dataclass(frozen=True)
class Format:
    """How a text is cut: at its events, which begin like this."""

    event: re.Pattern[bytes]
    # Which pieces may have the header of the whole: any, the first one always, all always, or none.
    header: str = "any"
    # Its times have no date, so the user says that all pieces are on one clock.
    needs_offset: bool = False


DIGIT = re.compile(rb"\d")
THESIS = Format(DIGIT)
# The header says how names are written.
RECORDER = Format(DIGIT, header="first")
RING = Format(re.compile(rb" *\S.*-\d+ .*\[\d{3}\]"))
# The header names the clock.
PERF = Format(re.compile(rb" *\S+ .*\[\d{3}\] +\d+\.\d+:"), header="all")
STRACE = Format(DIGIT, header="none")
BLKPARSE = Format(re.compile(rb" *\d+,\d+ "), header="none", needs_offset=True)
LOW_LEVEL = Format(re.compile(rb"{"), header="none")
JSON = Format(
    re.compile(rb'{"type": "(printf", "data": "\d|value", "data": \["track_event)'), header="first"
)

# Recordings that give their rows also to a reader who knows nothing of what came before a piece.
RECORDINGS: dict[str, Format] = {
    **{
        f"thesis/{name}.log": THESIS
        for name in [
            "small1",
            "small4",
            "parallel4",
            "append",
            "empty",
            "msync",
            "odsync",
            "rename",
            "sqlite_rj_full",
            "sqlite_wal_full",
            "sync",
            "unlinked",
            "uring",
            "small4-slowdisk",
            "small4-torn",
        ]
    },
    "bpf/patched-0.17.log": RECORDER,
    "bpf/patched-0.27.log": RECORDER,
    "bpf/patched.log.gz": RECORDER,
    "bpf/stacks.log": RECORDER,
    "bpf/stock-0.27.log.gz": RECORDER,
    "bpf/stock-tracepoints.log.gz": RECORDER,
    "ftrace/parallel4.report.txt.gz": RING,
    "ftrace/rename.report.txt.gz": RING,
    "ftrace/small4.trace.txt.gz": RING,
    "ftrace/sqlite_wal_full.trace.txt.gz": RING,
    "ftrace/uring.report.txt.gz": RING,
    "dynamic-events/btrfs.txt.gz": RING,
    "dynamic-events/btrfs-both.txt.gz": RING,
    "dynamic-events/ext4.txt.gz": RING,
    "dynamic-events/ext4-both.txt.gz": RING,
    "dynamic-events/f2fs.txt.gz": RING,
    "dynamic-events/f2fs-both.txt.gz": RING,
    "dynamic-events/xfs.txt.gz": RING,
    "dynamic-events/xfs-both.txt.gz": RING,
    "marks/marks.trace.txt.gz": RING,
    "perf/pipe.txt.gz": PERF,
    "perf/stacks.txt.gz": PERF,
    "strace/msync.log": STRACE,
    "strace/odd-plain.log": STRACE,
    "strace/rename.log": STRACE,
    "strace/small4.log": STRACE,
    "strace/sqlite_wal_full.log": STRACE,
    "strace/uring.log": STRACE,
    "blktrace/small1.blkparse.txt.gz": BLKPARSE,
    "blktrace/uring.blkparse.txt.gz": BLKPARSE,
    "bpftrace-json/btetto-0.27.json.gz": JSON,
    "bpftrace-json/stock-0.27.json.gz": JSON,
    "events:thesis/small4.log": LOW_LEVEL,
    "events:ftrace/small4.trace.txt.gz": LOW_LEVEL,
    "events:dynamic-events/ext4-both.txt.gz": LOW_LEVEL,
}


def content(name: str) -> bytes:
    """The text of a recording. `events:` is the low-level log of the rest of the name."""
    of_events = name.removeprefix("events:")
    path = DATA / of_events
    if of_events != name:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "x.events.jsonl")
            _core.convert([str(path)], str(log))
            return log.read_bytes()
    data = path.read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


@cache
def parts(name: str) -> tuple[bytes, list[bytes]]:
    """The header of a recording, and its events, each with the lines that belong to it."""
    is_event = RECORDINGS[name].event.match
    lines = content(name).splitlines(keepends=True)
    # The header of a recorder holds lines that look like events.
    after = max((n + 1 for n, line in enumerate(lines) if b"TIME PID COMM" in line), default=0)
    first = next(n for n in range(after, len(lines)) if is_event(lines[n]))
    events: list[bytes] = []
    for line in lines[first:]:
        if is_event(line) or not events:
            events.append(line)
        else:
            events[-1] += line
    return b"".join(lines[:first]), events


@dataclass
class Cut:
    """Pieces of a recording: each a range of its events, in the order in which they are named."""

    name: str
    ranges: list[tuple[int, int]]
    headers: list[bool]

    @classmethod
    def random(cls, rng: random.Random, name: str, max_events: int = 300) -> Cut:
        _, events = parts(name)
        first = rng.randrange(max(1, len(events) - max_events))
        last = min(len(events), first + rng.randrange(20, max_events))
        count = min(rng.choice((2, 3, 3, 4)), last - first)
        cuts = sorted(rng.sample(range(first + 1, last), count - 1))
        overlap = rng.choice((0, 0, 1, 2, 3, 5, 8, 20, 60))
        ranges = [
            (begin, min(last, end + (rng.randint(0, overlap) if overlap else 0)))
            for begin, end in itertools.pairwise([first, *cuts, last])
        ]
        rng.shuffle(ranges)
        header = RECORDINGS[name].header
        choice = rng.choice(("all", "first", "none", "some"))
        headers = []
        for begin, _ in ranges:
            is_first = begin == first and (header == "first" or choice == "first")
            is_one = choice == "all" or (choice == "some" and rng.random() < 0.5)
            headers.append(header == "all" or (header != "none" and (is_first or is_one)))
        return cls(name, ranges, headers)

    def whole(self) -> bytes:
        first, last = min(begin for begin, _ in self.ranges), max(end for _, end in self.ranges)
        return self.text((first, last), any(self.headers))

    def text(self, events: tuple[int, int], header: bool) -> bytes:
        head, all_events = parts(self.name)
        return (head if header else b"") + b"".join(all_events[slice(*events)])

    def pieces(self) -> list[bytes]:
        return [
            self.text(events, header)
            for events, header in zip(self.ranges, self.headers, strict=True)
        ]


def convert(
    folder: Path, texts: list[bytes], needs_offset: bool = False
) -> tuple[Tables, dict[str, int]]:
    """The tables of some inputs, and their losses that are missing from the statistics."""
    paths = []
    for number, text in enumerate(texts):
        path = folder / f"{number}.txt"
        path.write_bytes(text)
        paths.append(str(path))
    hints = dict.fromkeys(paths, InputHints(offset_ns=0)) if needs_offset else {}
    summary = _core.convert(paths, f"{folder}/out/", hints=hints, is_temporary=True)
    tables = {name: once.read_rows(folder / "out" / f"syncline_{name}.parquet") for name in TABLES}
    lost = {row["reason"]: row["count"] for row in summary["losses"] if row["severity"] == "loss"}
    return tables, lost


def without_numbers(tables: Tables) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of each table; a row of a bio or a call says whose it is by the start of the request."""
    starts = {row["sync_id"]: (row["ts_ns"], row["tid"], row["start_ns"]) for row in tables["sync"]}
    found = {}
    for name in TABLES:
        rows = (
            {
                **{k: v for k, v in row.items() if k not in NUMBERS},
                "of": starts.get(row["sync_id"]) if name != "sync" else None,
            }
            for row in tables[name]
        )
        found[name] = Counter(tuple(row.items()) for row in rows)
    return found


@dataclass
class Difference:
    """What the pieces of a recording give otherwise than the whole."""

    # Rows of the pieces that are marked as certain, and that the whole does not have.
    wrong: list[tuple[str, Row]] = field(default_factory=list)
    # Rows of the whole that the pieces lack, although no loss is counted.
    lost: list[tuple[str, Row]] = field(default_factory=list)
    # Rows that are not equal, whether or not they are marked.
    unequal: int = 0

    @property
    def is_silent(self) -> bool:
        return bool(self.wrong or self.lost)


def is_certain(table: str, row: Row) -> bool:
    if table == "call":
        return True
    return row["incomplete"] is None and row["confidence"] in (None, "exact")


def compare(
    whole: tuple[Tables, dict[str, int]], pieces: tuple[Tables, dict[str, int]]
) -> Difference:
    (expected, known), (found, lost) = whole, pieces
    result = Difference()
    is_loss_counted = sum(lost.values()) > sum(known.values())
    a, b = without_numbers(expected), without_numbers(found)
    for table in TABLES:
        missing = [dict(row) for row in (a[table] - b[table]).elements()]
        extra = [dict(row) for row in (b[table] - a[table]).elements()]
        result.unequal += len(missing) + len(extra)
        # A row of a call has no mark, so a loss is its mark.
        result.wrong += [
            (table, row)
            for row in extra
            if is_certain(table, row) and (table != "call" or not is_loss_counted)
        ]
        if len(missing) > len(extra) and not is_loss_counted:
            result.lost += [(table, row) for row in missing]
    return result


def difference(cut: Cut, folder: Path) -> Difference:
    needs_offset = RECORDINGS[cut.name].needs_offset
    whole, pieces = (
        convert(folder, texts, needs_offset) for texts in ([cut.whole()], cut.pieces())
    )
    return compare(whole, pieces)


def usable_cuts(rng: random.Random, names: list[str]) -> Iterator[Cut]:
    """Random cuts whose pieces are inputs: all hold events, and no two are the same."""
    while True:
        cut = Cut.random(rng, rng.choice(names))
        texts = cut.pieces()
        if len(set(texts)) == len(texts):
            yield cut


def main(argv: list[str]) -> None:
    count, seed = int(argv[0]), int(argv[1]) if len(argv) > 1 else 0
    names = [name for name in RECORDINGS if len(argv) < 3 or re.search(argv[2], name)]
    silent: Counter[str] = Counter()
    unequal: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    done: Counter[str] = Counter()
    examples: dict[str, tuple[Cut, Difference]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for cut in itertools.islice(usable_cuts(random.Random(seed), names), count):
            done[cut.name] += 1
            try:
                found = difference(cut, Path(folder))
            except _core.CoreError as error:
                refused[f"{cut.name}: {str(error)[:160]}"] += 1
                continue
            silent[cut.name] += found.is_silent
            unequal[cut.name] += found.unequal > 0
            if found.is_silent:
                examples.setdefault(cut.name, (cut, found))
    for name in names:
        print(f"{done[name]:6} {unequal[name]:6} other rows {silent[name]:6} wrong  {name}")
    print(f"{done.total()} cuts: {unequal.total()} with other rows, {silent.total()} wrong")
    for text, times in refused.most_common(12):
        print(f"refused {times}: {text}")
    for name, (cut, found) in examples.items():
        print(name, cut.ranges, cut.headers)
        for what in ("wrong", "lost"):
            for table, row in getattr(found, what)[:1]:
                print("   ", what, table, {k: v for k, v in row.items() if v is not None})


if __name__ == "__main__":
    main(sys.argv[1:])
