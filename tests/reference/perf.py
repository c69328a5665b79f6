"""A plain reader of the text of `perf script`, with one regular expression for each kind of line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.reference.ftrace import NAME_AND_DATA, Event, _fields, _time

LINE = re.compile(
    r"\s*(?P<comm>\S.*?|)\s+(?:(?P<pid>\d+)/)?(?P<tid>\d+) +\[\d+\] +(?P<time>\d+\.\d+): +(?P<group>\w+):(?P<event>\w+:.*)"
)
FRAME = re.compile(r"\s+(?P<address>[0-9a-f]+) (?P<rest>.*)")


@dataclass
class Sample(Event):
    """An event with its stack, innermost frame first: (address, text of the line)."""

    frames: list[tuple[int, str]] = field(default_factory=list)


def read(text: str) -> Iterator[Sample]:
    """The tracepoint events of a text, in file order."""
    sample = None
    for line in text.splitlines():
        if row := LINE.fullmatch(line):
            if sample:
                yield sample
            event = NAME_AND_DATA.fullmatch(row["event"])
            assert event, line
            name, pid = event["name"], row["pid"]
            fields = _fields(name, event["data"])
            sample = Sample(
                _time(row["time"]),
                int(row["tid"]),
                int(pid) if pid else None,
                row["comm"],
                name,
                fields,
            )
        elif frame := FRAME.fullmatch(line):
            assert sample, line
            sample.frames.append((int(frame["address"], 16), frame[0].strip()))
        else:
            assert not line or line.startswith("#"), line
    if sample:
        yield sample
