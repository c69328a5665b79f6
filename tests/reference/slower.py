"""The rows of the `*slower` tables, by regular expressions, and a generator of tables: the reference for `source/slower`."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

SECOND = 10**9
DAY = 86_400 * SECOND
_BANNER = re.compile(
    r"Tracing (\w+) operations(?: (?:that are )?slower than \d+ ms)?(?:\.\.\..*| for .*)?$"
)
_HEADER = re.compile(r"TIME +COMM +PID +T +BYTES +OFF_KB +LAT\(ms\) +FILENAME$")
_CSV_HEADER = re.compile(r"ENDTIME_([un])s,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE")
_ROW = re.compile(
    r"(?P<time>\d\d:\d\d:\d\d) (?P<comm>.{14}|.{16}) (?P<pid>\d+) +(?P<letter>[RWOSFGC]) (?P<bytes>-?\d+|LL_MAX) +(?P<offset>-?\d+) +"
    r"(?P<lat>\d+\.\d\d) (?P<file>.+)$"
)
_CSV = re.compile(
    r"(?P<time>\d+),(?P<comm>.*?),(?P<pid>\d+),(?P<letter>[RWOSFGC]),(?P<bytes>-?\d+|LL_MAX),(?P<offset>-?\d+),(?P<lat>\d+),(?P<file>.+)$"
)


@dataclass(frozen=True)
class Sync:
    """A sync of a table. Times in ns; those of a table with times of day count from the midnight before the day of its first row."""

    ts: int
    dur: int
    pid: int
    comm: str
    path: str | None
    fs: str | None
    ret: int | None


def path_of(name: str, letter: str) -> str | None:
    """A base name, which the tool may have cut: libbpf-tools (F) keep 31 bytes, bcc (S) 32 or more."""
    cut = "..." if len(name.encode()) >= (31 if letter == "F" else 32) else ""
    return None if name == "/" else f".../{name}{cut}"


def _ret(letter: str, count: str) -> int | None:
    if letter != "S" or count == "LL_MAX":
        return None
    value = int(count)
    errors = {bits - error: -error for bits in (2**32, 2**64) for error in range(1, 4096)}
    return 0 if value == 0 else errors.get(value)


def read(text: str) -> list[Sync]:
    """The syncs in the order of the lines."""
    found = []
    fs, named, unit = None, None, None
    last = None
    for line in text.split("\n"):
        before, named = named, None
        if csv_header := _CSV_HEADER.match(line):
            rest = line[csv_header.end() :]
            unit, fs = (1 if csv_header[1] == "n" or rest else 1000), before
            if not rest:
                continue
            line = rest
        if banner := _BANNER.match(line):
            fs = named = banner[1].lower()
        elif _HEADER.match(line):
            fs = before
        elif row := _ROW.match(line):
            hours, minutes, seconds = map(int, row["time"].split(":"))
            at = (hours * 60 + minutes) * 60 + seconds
            # The first time that is at most an hour earlier than the one before.
            last = 86_400 + at if last is None else last - 3600 + (at - last + 3600) % 86_400
            ms, hundredths = row["lat"].split(".")
            dur = int(ms) * 10**6 + int(hundredths) * 10**4
            _add(found, row, last * SECOND, dur, fs)
        elif (row := _CSV.match(line)) and unit:
            _add(found, row, int(row["time"]) * unit, int(row["lat"]) * 1000, fs)
    return found


def _add(found: list[Sync], row: re.Match[str], end: int, dur: int, fs: str | None) -> None:
    if row["letter"] in "SF":
        path = path_of(row["file"], row["letter"])
        ret = _ret(row["letter"], row["bytes"])
        found.append(Sync(end - dur, dur, int(row["pid"]), row["comm"].rstrip(), path, fs, ret))


COMMS = ("postgres", "Web Content", "a 1 S 0 0 0.01", "kworker/u8:2", "é ü", "7")
FILES = ("wal", "two  blanks", "1,2,S,3,4,5,6", "a" * 31, "b" * 32, "c" * 30, "/", "日本 語")


def generated(rng: random.Random) -> tuple[str, list[Sync], dict[str, int]]:
    """A table, its syncs, and how many other calls of each kind it has."""
    is_csv, is_bcc = rng.random() < 0.4, rng.random() < 0.5
    fs = rng.choice(["ext4", "xfs", "btrfs", "f2fs", "zfs"])
    shown = {"xfs": "XFS", "zfs": "ZFS"}.get(fs, fs) if is_bcc else fs
    least = rng.choice([0, 1, 10])
    lines = []
    if not is_csv:
        end = "" if is_bcc else rng.choice(["... Hit Ctrl-C to end.", " for 30 secs."])
        slower = f" slower than {least} ms" if least else ""
        lines.append(f"Tracing {shown} operations{slower}{end}")
        lines.append("TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME")
    else:
        lines.append(
            f"ENDTIME_{'u' if is_bcc else 'n'}s,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE"
        )
    syncs: list[Sync] = []
    others: dict[str, int] = {}
    now = rng.randrange(3600, 80_000)
    since_boot = 10**6 * rng.randrange(10**3, 10**6)
    names = {"R": "slow_read", "W": "slow_write", "O": "slow_open"}
    for _ in range(rng.randrange(1, 60)):
        now += rng.choice([0, 0, 1, 5, 3600, 50_000]) if lines[2:] or is_csv else 0
        since_boot += rng.randrange(1, 10**9)
        letter = rng.choice(["S" if is_bcc else "F"] * 4 + ["R", "W", "O"])
        comm, file = rng.choice(COMMS), rng.choice(FILES)
        pid = rng.randrange(1, 4_194_304)
        error = rng.choice([0, 0, 0, 5, 28])
        if letter == "S":
            count = str((2**32 - error) % 2**32)
        elif letter == "F":
            count = rng.choice(["LL_MAX", "4095"])
        else:
            count = str(rng.choice([0, 4096, 2**32 - 11 if is_bcc else -11]))
        offset = rng.randrange(0, 10**6)
        us = rng.randrange(least * 1000 + 1, 10 ** rng.randrange(4, 8) + least * 1000 + 1)
        if is_csv:
            us = min(us, since_boot // (1 if is_bcc else 1000))
            unit = 1000 if is_bcc else 1
            lines.append(f"{since_boot},{comm},{pid},{letter},{count},{offset},{us},{file}")
            end, dur = since_boot * unit, us * 1000
        else:
            ms = f"{us / 1000:.2f}"
            of_day = now % 86_400
            at = f"{of_day // 3600:02}:{of_day // 60 % 60:02}:{of_day % 60:02}"
            if is_bcc:
                shown_comm = f"{comm:<14.14}"
                lines.append(
                    f"{at:<8} {shown_comm} {pid:<6} {letter} {count:<7} {offset:<8} {ms:>7} {file}"
                )
            else:
                lines.append(
                    f"{at:<8} {comm:<16} {pid:<7} {letter} {count:<7} {offset:<8} {ms:>7} {file}"
                )
            end, dur = DAY + now * SECOND, int(ms.replace(".", "")) * 10**4
        if letter in "SF":
            ret = -error if letter == "S" else None
            path = path_of(file, letter)
            of = None if is_csv else fs
            syncs.append(Sync(end - dur, dur, pid, comm, path, of, ret))
        else:
            others[names[letter]] = others.get(names[letter], 0) + 1
    return "".join(f"{line}\n" for line in lines), syncs, others
