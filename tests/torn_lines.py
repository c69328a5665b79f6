"""Tears one line of a recording, and compares its tables with those of the whole recording.

    python -m tests.torn_lines COUNT [SEED [PATTERN]]

prints how many of COUNT random tears give a figure that is marked as certain and is wrong, by recording, and an example of each fault.
"""

from __future__ import annotations

import itertools
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from syncline import _core

from tests.cut_logs import NUMBERS, RECORDINGS, TABLES, Row, Tables, convert, is_certain, parts

# Any beginning of a frame of a stack is a frame, and any beginning of a path is a path.
UNCHECKED = {*NUMBERS, "stack", "path"}
# A tear: the line ends early, the log ends in it, the next line is joined to its rest, or bytes in its middle are gone.
KINDS = ("short", "last", "joined", "middle")


@dataclass(frozen=True)
class Tear:
    """Some events of a recording, with a line of them torn."""

    name: str
    events: tuple[int, int]
    line: int
    kind: str
    # Byte of the line, and for `middle` how many bytes are gone.
    at: int
    gone: int = 0

    @classmethod
    def random(
        cls, rng: random.Random, name: str, kinds: tuple[str, ...] = KINDS, max_events: int = 120
    ) -> Tear:
        _, events = parts(name)
        first = rng.randrange(max(1, len(events) - max_events))
        last = min(len(events), first + max_events)
        lines = whole_text(name, (first, last)).splitlines(keepends=True)
        header = len(parts(name)[0].splitlines())
        line = rng.randrange(header, len(lines))
        length = len(lines[line].rstrip(b"\n"))
        kind = rng.choice(kinds)
        # A blank line may be of the program.
        indent = length - len(lines[line].rstrip(b"\n").lstrip())
        at = rng.randrange(indent + 1, max(indent + 2, length))
        return cls(name, (first, last), line, kind, at, rng.randint(1, 12))

    def text(self) -> bytes:
        lines = whole_text(self.name, self.events).splitlines(keepends=True)
        line = lines[self.line]
        head = line[: self.at]
        if self.kind == "last":
            return b"".join(lines[: self.line]) + head
        rest = {"short": b"\n", "joined": b"", "middle": line[self.at + self.gone :]}[self.kind]
        if self.kind == "middle" and not rest:
            rest = b"\n"
        return b"".join([*lines[: self.line], head, rest, *lines[self.line + 1 :]])

    def torn(self) -> list[bytes]:
        before, after = (
            text.splitlines() for text in (whole_text(self.name, self.events), self.text())
        )
        return [*before[self.line : self.line + 2], b"->", *after[self.line : self.line + 1]]


@cache
def whole_text(name: str, events: tuple[int, int]) -> bytes:
    head, all_events = parts(name)
    return head + b"".join(all_events[slice(*events)])


def wrong_figures(
    whole: tuple[Tables, dict[str, int]], torn: tuple[Tables, dict[str, int]]
) -> list[tuple[str, Row, dict[str, tuple[Any, Any]]]]:
    """Rows that are marked as certain, and that say something else than every row of the whole; and what else they say."""
    (expected, known), (found, lost) = whole, torn
    is_loss_counted = lost.get("unparsed_line", 0) > known.get("unparsed_line", 0)
    wrong = []
    for table in TABLES:
        by_time: dict[Any, list[Row]] = defaultdict(list)
        for row in with_owner(expected, table):
            by_time[row["ts_ns"]].append(row)
        for row in with_owner(found, table):
            # A row of a call has no mark, so a loss is its mark. A request of the block layer begins with its first event in the log.
            if (
                not is_certain(table, row)
                or (table == "call" and (is_loss_counted or row["ret"] is None))
                or row.get("is_request")
            ):
                continue
            said = {
                name: value
                for name, value in row.items()
                if value is not None and name != "confidence"
            }
            differences = [
                {name: (other[name], value) for name, value in said.items() if other[name] != value}
                for other in by_time[row["ts_ns"]]
            ]
            if all(differences):
                wrong.append((table, row, min(differences, key=len, default={})))
    return wrong


def with_owner(tables: Tables, table: str) -> Iterator[Row]:
    """The rows of a table, without their numbers."""
    for row in tables[table]:
        yield {k: v for k, v in row.items() if k not in UNCHECKED}


def random_tears(
    rng: random.Random, names: list[str], kinds: tuple[str, ...] = KINDS
) -> Iterator[Tear]:
    while True:
        yield Tear.random(rng, rng.choice(names), kinds)


@cache
def whole_tables(name: str, events: tuple[int, int]) -> tuple[Tables, dict[str, int]]:
    with tempfile.TemporaryDirectory() as folder:
        text = whole_text(name, events)
        return convert(Path(folder), [text], RECORDINGS[name].needs_offset)


def faults(tear: Tear, folder: Path) -> list[tuple[str, Row, dict[str, tuple[Any, Any]]]]:
    torn = convert(folder, [tear.text()], RECORDINGS[tear.name].needs_offset)
    return wrong_figures(whole_tables(tear.name, tear.events), torn)


def main(argv: list[str]) -> None:
    count, seed = int(argv[0]), int(argv[1]) if len(argv) > 1 else 0
    names = [name for name in RECORDINGS if len(argv) < 3 or re.search(argv[2], name)]
    kinds = tuple(argv[3].split(",")) if len(argv) > 3 else KINDS
    wrong: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    done: Counter[str] = Counter()
    examples: dict[tuple[str, str], tuple[Tear, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for tear in itertools.islice(random_tears(random.Random(seed), names, kinds), count):
            done[tear.name] += 1
            try:
                found = faults(tear, Path(folder))
            except _core.CoreError as error:
                refused[f"{tear.name}: {str(error)[:160]}"] += 1
                continue
            wrong[tear.name] += bool(found)
            if found:
                examples.setdefault((tear.name, tear.kind), (tear, found))
    for name in names:
        print(f"{done[name]:6} {wrong[name]:6} wrong  {name}")
    print(f"{done.total()} tears: {wrong.total()} wrong, {refused.total()} refused")
    for text, times in refused.most_common(8):
        print(f"refused {times}: {text}")
    for tear, found in examples.values():
        print(tear)
        for line in tear.torn():
            print("   ", line)
        for table, row, differences in found[:2]:
            key = {k: row.get(k) for k in ("ts_ns", "tid", "op", "dur_ns", "bytes")}
            print("   ", table, key, differences or "is in no row")


if __name__ == "__main__":
    main(sys.argv[1:])
