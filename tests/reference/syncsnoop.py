"""The calls of the tables of syncsnoop, by one regular expression a form, and a generator of tables: the reference for `syncsnoop.rs`."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

SECOND = 10**9
OPS = ("sync", "fsync", "fdatasync", "msync", "syncfs", "sync_file_range")
_OF_DAY = re.compile(
    r"(\d\d):(\d\d):(\d\d)  (?P<pid>\d+) +(?P<comm>\S.*?) +tracepoint:syscalls:sys_enter_(?P<op>\w+)\s*$"
)
_SINCE_BOOT = re.compile(r"(?P<time>\d+\.\d{9}) +(?P<comm>\S.*?) +(?P<op>[a-z_2]+) *$")
_OLD = re.compile(r"(?P<time>\d+\.\d{9}) +sync\(\)$")


@dataclass(frozen=True)
class Call:
    """ts in ns, of a table with times of day since the midnight before its first row."""

    ts: int
    pid: int | None
    comm: str | None
    op: str


def _op(name: str) -> str:
    return "sync_file_range" if name.startswith(("sync_file_range", "arm_sync")) else name


def read(text: str) -> list[Call]:
    found = []
    last = None
    for line in text.split("\n"):
        if row := _OF_DAY.match(line):
            at = (int(row[1]) * 60 + int(row[2])) * 60 + int(row[3])
            # The first time that is at most an hour earlier than the one before.
            last = at if last is None else last - 3600 + (at - last + 3600) % 86_400
            found.append(Call(last * SECOND, int(row["pid"]), row["comm"], _op(row["op"])))
        elif row := _OLD.match(line):
            found.append(Call(int(row["time"].replace(".", "")), None, None, "sync"))
        elif row := _SINCE_BOOT.match(line):
            ts = int(row["time"].replace(".", ""))
            found.append(Call(ts, None, row["comm"], _op(row["op"])))
    return found


def generated(rng: random.Random) -> tuple[str, list[Call]]:
    """A table of one of the tools, and its calls."""
    tool = rng.choice(["bpftrace", "bcc", "old"])
    comms = ("wal", "a b 7 S 0", "Web Content", "kworker/u8:2")
    calls, lines = [], []
    now = rng.randrange(0, 80_000) * SECOND
    if tool == "bpftrace":
        lines += ["Attaching 7 probes...", "Tracing sync syscalls... Hit Ctrl-C to end."]
        lines.append(f"{'TIME':<9} {'PID':<6} {'COMM':<16} EVENT")
    else:
        lines.append(f"{'TIME(s)':<18} " + (f"{'COMM':<16} CALL" if tool == "bcc" else "CALL"))
    for _ in range(rng.randrange(1, 40)):
        step = rng.choice([0, 0, 1, 3600, 50_000]) if lines[3:] or tool != "bpftrace" else 0
        now += step * SECOND if tool == "bpftrace" else 1000 * rng.randrange(0, 10**7)
        pid, comm, op = rng.randrange(1, 4_194_304), rng.choice(comms), rng.choice(OPS)
        if tool == "bpftrace":
            at = now // SECOND % 86_400
            time = f"{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}"
            lines.append(f"{time}  {pid:<6} {comm:<16} tracepoint:syscalls:sys_enter_{op}")
            calls.append(Call(now, pid, comm, op))
            continue
        time = f"{now // SECOND}.{now % SECOND:09}"
        if tool == "bcc":
            lines.append(f"{time:<18} {comm:<16} {op:<16}")
            calls.append(Call(now, None, comm, op))
        else:
            lines.append(f"{time:<18} sync()")
            calls.append(Call(now, None, None, "sync"))
    return "".join(f"{line}\n" for line in lines), calls
