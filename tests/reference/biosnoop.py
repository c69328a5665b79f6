"""The rows of the tables of biosnoop, by regular expressions from the left: the reference for `source/biosnoop`."""

from __future__ import annotations

import re
from dataclasses import dataclass

SECOND = 10**9
MS = 10**6
DAY = 86_400 * SECOND
_ROW = re.compile(
    r"(?:(?P<of_day>\d\d:\d\d:\d\d)\.(?P<ms>\d{3})|(?P<s>-?\d+)\.(?P<fraction>\d{6}|\d{9})) +(?P<comm>.{1,16}?) +(?P<pid>\d+) +"
    r"(?P<disk>[A-Za-z<?][^ ]*) +(?P<letters>[FWDERNASM]+) +(?P<sector>-?\d+) +(?P<bytes>-?\d{1,7})(?P<pattern> *[SR?])? *"
    r"(?:(?P<queue>-?\d+\.\d+) +)?(?P<latency>\d+\.\d+) *$"
)
_MILLIS = {
    "TIME(ms) COMM PID LAT(ms)": r"(?P<time>\d+) +(?P<comm>.+?) +(?P<pid>\d+) +(?P<latency>\d+)$",
    "TIME(ms) DISK COMM PID LAT(ms)": r"(?P<time>.{12}) (?P<disk>.{7}) (?P<comm>.+?) +(?P<pid>\d+) +(?P<latency>\d+)$",
    "TIME(ms) DISK ID COMM PID LAT(ms)": r"(?P<time>\d+) +(?P<disk>\d+ +\d+) +(?P<comm>.+?) +(?P<pid>\d+) +(?P<latency>\d+)$",
}


@dataclass(frozen=True)
class Request:
    """A row of `syncline_bio`, as far as the table knows it."""

    begin: int
    dur: int
    queue: int | None
    device: int | None
    dev: str | None
    sector: int | None
    bytes: int | None
    direction: str
    rwbs: str | None
    pid: int | None
    comm: str | None


def _ns(ms: str) -> int:
    whole, decimals = ms.split(".")
    return int(whole) * MS + int(decimals) * MS // 10 ** len(decimals)


def _direction(letters: str) -> str:
    operation = letters[1:] if letters.startswith("F") and letters != "F" else letters
    names = {"W": "write", "R": "read", "D": "discard", "F": "flush", "N": "unknown"}
    return names[operation[0]]


def _of_bcc(row: re.Match[str]) -> Request:
    if row["of_day"]:
        hours, minutes, seconds = map(int, row["of_day"].split(":"))
        end = ((hours * 60 + minutes) * 60 + seconds) * SECOND + int(row["ms"]) * MS
    else:
        sign = -1 if row["s"].startswith("-") else 1
        fraction = int(row["fraction"]) * 10 ** (9 - len(row["fraction"]))
        end = sign * (abs(int(row["s"])) * SECOND + fraction)
    is_libbpf = len(row["latency"].split(".")[1]) == 3
    is_known = (row["comm"], row["pid"]) != ("?", "0")
    device = _ns(row["latency"])
    queue = None
    if row["queue"] and not row["queue"].startswith("-"):
        queue = _ns(row["queue"])
        if queue == 0 and (is_libbpf or not is_known):
            queue = None
    direction = _direction(row["letters"])
    sector = int(row["sector"])
    size = int(row["bytes"])
    has_place = sector != -1 and (is_known or is_libbpf)
    dur = device + (queue or 0)
    return Request(
        begin=DAY + end - dur,
        dur=dur,
        queue=queue,
        device=device,
        dev=None if row["disk"] in ("Unknown", "<unknown>", "?") else row["disk"],
        sector=sector if has_place else None,
        bytes=size if size or direction == "flush" else None,
        direction=direction,
        rwbs=row["letters"] if is_libbpf else None,
        pid=int(row["pid"]) if is_known else None,
        comm=row["comm"] if is_known else None,
    )


def read(text: str) -> list[Request]:
    """The requests in the order of the lines."""
    found = []
    form = None
    for line in text.split("\n"):
        form = _MILLIS.get(" ".join(line.split()), form)
        if row := _ROW.match(line):
            found.append(_of_bcc(row))
        elif form and (row := re.match(form, line)):
            dur = int(row["latency"]) * MS
            disk = row.groupdict().get("disk")
            found.append(
                Request(
                    begin=DAY + int(row["time"]) * MS - dur,
                    dur=dur,
                    queue=None,
                    device=None,
                    dev=(",".join(disk.split()) or None) if disk else None,
                    sector=None,
                    bytes=None,
                    direction="unknown",
                    rwbs=None,
                    pid=int(row["pid"]),
                    comm=None if "swapper/" in text else row["comm"],
                )
            )
    return found
