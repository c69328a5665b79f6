"""The rows of the tables of biosnoop, by regular expressions from the left: the reference for `source/biosnoop`, and tables of known requests."""

from __future__ import annotations

import random
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


# Letters of libbpf-tools, with what the request did.
_LETTERS = {
    "R": "read", "RA": "read", "RM": "read", "W": "write", "WS": "write", "WSM": "write", "FWS": "write",
    "FF": "flush", "FFS": "flush", "D": "discard", "DS": "discard",
}  # fmt: skip
# Names of threads, some of which look like columns. The tools of bcc and libbpf-tools cut at 14 characters.
_COMMS = (
    "wal",
    "a b vdb R",
    "1 2 3",
    "Web Content",
    "jbd2/vdb-8",
    "kworker/u8:2-ev",
    "12:00:00.000",
    "lost 3 events",
)
_DISKS = ("vdb", "nvme0n1", "xvda1", "dm-0")


def generated(rng: random.Random) -> tuple[str, list[Request]]:
    """A table as one of the tools prints it, and its requests."""
    tool = rng.choice(("bcc", "libbpf", "bpftrace"))
    of_day = tool == "libbpf" and rng.random() < 0.5
    has_queue, has_pattern = rng.random() < 0.5, tool == "bcc" and rng.random() < 0.3
    # The units of time and of latencies.
    tick, unit = {"bcc": (1000, 10_000), "libbpf": (1000, 1000), "bpftrace": (MS, MS)}[tool]
    tick = MS if of_day else tick
    # Times of day go on after midnight.
    at = rng.choice((DAY - 5 * SECOND, 7 * 3600 * SECOND)) if of_day else 0
    lines, found = [_header(tool, of_day, has_queue, has_pattern)], []
    for _ in range(rng.randrange(1, 30)):
        device = unit * rng.choice((0, rng.randrange(100), rng.randrange(90_000)))
        queue = unit * rng.randrange(20_000) if has_queue and tool != "bpftrace" else None
        is_known = tool == "bpftrace" or rng.random() < 0.9
        pid, comm = (rng.randrange(1, 1 << 22), rng.choice(_COMMS)) if is_known else (0, "?")
        disk, sector, size = rng.choice(_DISKS), 8 * rng.randrange(1 << 30), 4096 * rng.randrange(1, 200)  # fmt: skip
        if tool == "bpftrace":
            major, minor = rng.choice(((254, 16), (259, 1_048_575)))
            lines.append(
                f"{at // MS:<12} {major:<4} {minor:<6} {comm:<16} {pid:<6} {device // MS:7}"
            )
            request = Request(
                begin=DAY + at - device, dur=device, queue=None, device=None, dev=f"{major},{minor}", sector=None,
                bytes=None, direction="unknown", rwbs=None, pid=pid, comm=comm,
            )  # fmt: skip
        else:
            letters = rng.choice(("R", "W") if tool == "bcc" else tuple(_LETTERS))
            is_flush = _LETTERS[letters] == "flush"
            size, sector = (0, -1) if is_flush else (size, sector)
            time = _clock(at % DAY) if of_day else f"{at // SECOND}.{at % SECOND // 1000:06}"
            row = f"{time:<11} {comm:<14.14} {pid:<7} "
            row += f"{disk:<9} {letters} " if tool == "bcc" else f"{disk:<7} {letters:<4} "
            row += f"{sector:<10} {size:<7} " + (f"{rng.choice('SR?')} " if has_pattern else "")
            latencies = [device] if queue is None else [queue, device]
            row += " ".join(
                f"{ns // MS:>4}.{ns % MS // unit:0{len(str(MS // unit)) - 1}}" for ns in latencies
            )
            lines.append(row)
            # bcc prints zeroes for what it does not know, and libbpf-tools for a request that no scheduler queued.
            if queue is not None and (not is_known or tool == "libbpf") and queue == 0:
                queue = None
            has_place = sector != -1 and (is_known or tool == "libbpf")
            dur = device + (queue or 0)
            request = Request(
                begin=DAY + at - dur, dur=dur, queue=queue, device=device, dev=disk, sector=sector if has_place else None,
                bytes=size, direction=_LETTERS[letters], rwbs=letters if tool == "libbpf" else None,
                pid=pid if is_known else None, comm=comm[:14] if is_known else None,
            )  # fmt: skip
        found.append(request)
        if rng.random() < 0.2:
            lines.append({"bcc": "Possibly lost 3 samples", "libbpf": "lost 3 events on CPU #1", "bpftrace": "Lost 3 events"}[tool])  # fmt: skip
        at += tick * rng.randrange(0, 3 * SECOND // tick)
    return "".join(f"{line}\n" for line in lines), found


def _header(tool: str, of_day: bool, has_queue: bool, has_pattern: bool) -> str:
    if tool == "bpftrace":
        return "Attaching 4 probes...\nTIME(ms)     DISK ID        COMM             PID    LAT(ms)\n             MAJOR MINOR"
    columns = ["TIMESTAMP" if of_day else "TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES"]
    return "   ".join([*columns, *["P"] * has_pattern, *["QUE(ms)"] * has_queue, "LAT(ms)"])


def _clock(ns: int) -> str:
    seconds = ns // SECOND
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ns % SECOND // MS:03}"
