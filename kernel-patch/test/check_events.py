#!/usr/bin/env python3
"""Checks the recordings of events.sh: do the wb_tracer events attribute every writeback to its cause?

check_events.py FOLDER [SETUP...]

Prints one line for each setup, followed by its problems. The exit code is 1 if there is any problem.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

LINE = re.compile(
    r"^\s*(?P<comm>.{1,16})-(?P<tid>\d+)\s+\[(?P<cpu>\d+)\] \S+\s+(?P<ts>[\d.]+): (?P<name>\w+): (?P<rest>.*)$"
)
PAIRS = {
    "sync_start": "sync_end",
    "sync_fs_start": "sync_fs_end",
    "wb_start": "wb_end",
    "commit_start": "commit_end",
    "commit_wait_start": "commit_wait_end",
    "fc_start": "fc_end",
    "fc_wait_start": "fc_wait_end",
    "flush_start": "flush_end",
}
FLIGHTS = {"bio_submit": "bio_complete", "bh_submit": "bh_complete", "log_submit": "log_complete"}
# Inodes whose page cache is metadata.
METADATA = {"btrfs": ("1",), "f2fs": ("1", "2")}
# (setup, case) in which a file system correctly writes more page cache than was dirty (MORE), or does not write it
# yet (LATER): data=journal has no direct I/O, and writes data to the journal first and to the file only after a
# commit; large folios are written whole.
MORE = {("ext4-journal", "direct-dsync"), ("xfs", "msync"), ("xfs", "range")}
LATER = {("ext4-journal", "background")}
# In 7.3, ext4 (without inline data or data=journal) and btrfs also have large folios. btrfs no longer turns a direct
# write into a buffered one: iomap syncs at the end of the write, and btrfs syncs again after it.
LARGE_7 = ("ext4", "ext4-nojournal", "ext4-fast-commit", "btrfs")
MORE_7 = {(setup, case) for setup in LARGE_7 for case in ("msync", "range")}
TWICE_7 = {("btrfs", "direct-dsync")}
BAD_KERNEL = re.compile(
    r"BUG:|WARNING:|Oops|possible recursive|circular locking|general protection|hung_task|blocked for more"
)


@dataclass
class Event:
    number: int
    comm: str
    tid: int
    name: str
    f: dict[str, str]


@dataclass
class Case:
    name: str
    f: dict[str, str]
    events: list[Event] = field(default_factory=list)


def fields(rest: str) -> dict[str, str]:
    # The path is the last field and may hold anything but a newline.
    head, found, path = rest.partition(" path=")
    out = dict(word.split("=", 1) for word in head.split() if "=" in word)
    if found:
        out["path"] = path
    return out


def read(path: Path) -> tuple[list[Event], list[Case], list[str]]:
    events: list[Event] = []
    cases: list[Case] = []
    problems: list[str] = []
    now: Case | None = None
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if line.startswith("#") or not line.strip():
            continue
        found = LINE.match(line)
        if not found:
            problems.append(f"line {number} is not an event: {line[:100]}")
            continue
        name, rest = found["name"], found["rest"]
        if name == "tracing_mark_write":
            word, _, more = rest.partition(" ")
            if word == "case":
                now = Case(more.split()[0], fields(more))
                cases.append(now)
            elif word == "done":
                now = None
            continue
        event = Event(number, found["comm"], int(found["tid"]), name, fields(rest))
        events.append(event)
        if now:
            now.events.append(event)
    return events, cases, problems


def check_pairs(events: list[Event]) -> list[str]:
    out = []
    open_: dict[tuple[str, int, str], list[Event]] = defaultdict(list)
    ends = {end: start for start, end in PAIRS.items()}
    ids: set[str] = set()
    for e in events:
        if e.name in PAIRS:
            if e.name == "sync_start":
                if e.f["id"] in ids:
                    out.append(f"line {e.number}: id {e.f['id']} is used twice")
                ids.add(e.f["id"])
                if open_[e.name, e.tid, ""]:
                    out.append(f"line {e.number}: a request begins inside another request")
            open_[e.name, e.tid, ""].append(e)
        elif e.name in ends:
            stack = open_[ends[e.name], e.tid, ""]
            # btrfs flushes its devices together, so the order of the ends is not that of the starts.
            match = next(
                (
                    s
                    for s in reversed(stack)
                    if s.f["id"] == e.f["id"] and s.f.get("dev") == e.f.get("dev")
                ),
                None,
            )
            if e.name in ("sync_end", "sync_fs_end"):
                match = next((s for s in reversed(stack) if s.f["id"] == e.f["id"]), None)
            if not match:
                out.append(f"line {e.number}: {e.name} id={e.f['id']} without a start in its task")
            else:
                stack.remove(match)
    for (name, tid, _), stack in open_.items():
        out += [f"line {s.number}: {name} id={s.f['id']} of task {tid} has no end" for s in stack]
    return out


def check_flights(events: list[Event]) -> list[str]:
    out = []
    ends = {end: start for start, end in FLIGHTS.items()}
    flying: dict[tuple[str, str], Event] = {}
    filled: Counter[str] = Counter()
    for e in events:
        if e.name == "bio_add_folio":
            filled[e.f["bio"]] += int(e.f["len"])
        elif e.name in FLIGHTS:
            key = (e.name, e.f["bio"])
            if key in flying:
                out.append(
                    f"line {e.number}: {e.name} of a bio in flight since line {flying[key].number}"
                )
            flying[key] = e
            if e.name == "bio_submit" and filled.pop(e.f["bio"], 0) != int(e.f["bytes"]):
                out.append(f"line {e.number}: its folios do not add up to its {e.f['bytes']} bytes")
        elif e.name in ends and not flying.pop((ends[e.name], e.f["bio"]), None):
            out.append(f"line {e.number}: {e.name} of a bio that is not in flight")
    out += [f"line {e.number}: {e.name} has no completion" for e in flying.values()]
    out += [f"folios of bio {bio} were never submitted" for bio in filled]
    return out


def check_journal(events: list[Event]) -> list[str]:
    out = []
    commits: dict[tuple[str, str], str] = {}
    for at, e in enumerate(events):
        if e.name == "commit_start":
            commits[e.f["dev"], e.f["tid"]] = e.f["id"]
        if e.name in ("commit_bio", "fc_bio"):
            submit = next(
                (n for n in events[at + 1 : at + 60] if n.tid == e.tid and n.name == "bh_submit"),
                None,
            )
            if not submit or any(submit.f[k] != e.f[k] for k in ("id", "bh", "sector", "bytes")):
                out.append(f"line {e.number}: {e.name} is not followed by its bh_submit")
            if e.name == "commit_bio" and commits.get((e.f["dev"], e.f["tid"])) not in (
                None,
                e.f["id"],
            ):
                out.append(f"line {e.number}: the id of commit_bio is not that of its commit")
    return out


def written(events: list[Event], ids: set[str], ino: str | None, setup: str) -> int:
    """Returns the bytes of page cache written for inode `ino`, or for all inodes that are not metadata."""
    metadata = METADATA.get(setup.partition("-")[0], ())
    return sum(
        int(e.f["len"])
        for e in events
        if e.name == "bio_add_folio"
        and e.f["id"] in ids
        and (e.f["ino"] == ino if ino else e.f["ino"] not in metadata)
    )


def escaped(path: str) -> str:
    raw = path.encode().decode("unicode_escape")
    return raw.replace("\\", "\\134").replace("\n", "\\012")


def check_case(case: Case, setup: str, release: int) -> list[str]:
    out = []
    here = (setup, case.name)
    more = MORE | MORE_7 if release >= 7 else MORE
    op, ino = case.f["op"], case.f.get("ino")
    if op in ("syncfs", "sync"):
        ids = {e.f["id"] for e in case.events if e.name == "sync_fs_start" and e.f["op"] == op}
        # sync() first wakes the flusher threads. They then write under ids of their own.
        ids |= {
            e.f["id"]
            for e in case.events
            if op == "sync" and e.name == "wb_start" and e.f["reason"] == "sync"
        }
        if not ids:
            out.append(f"{case.name}: no sync_fs_start")
    elif op == "background":
        ids = {
            e.f["id"] for e in case.events if e.name == "wb_start" and e.f["origin"] == "background"
        }
        if not any(e.name == "wb_start" and e.f["ino"] == ino for e in case.events):
            out.append(f"{case.name}: no wb_start of the file")
    else:
        starts = [e for e in case.events if e.name == "sync_start" and e.f["op"] == op]
        if ino:
            starts = [e for e in starts if e.f["ino"] == ino]
        ids = {e.f["id"] for e in starts}
        calls = int(case.f["calls"]) * (2 if release >= 7 and here in TWICE_7 else 1)
        if len(starts) != calls:
            out.append(f"{case.name}: {len(starts)} requests, not {calls}")
        if "path" in case.f and any(e.f["path"] != escaped(case.f["path"]) for e in starts):
            out.append(
                f"{case.name}: path {starts[0].f['path']!r}, not {escaped(case.f['path'])!r}"
            )
    if "bytes" in case.f:
        got, want = written(case.events, ids, ino, setup), int(case.f["bytes"])
        if here not in LATER and got != want and not (here in more and got > want):
            out.append(f"{case.name}: {got} bytes written, not {case.f['bytes']}")
    return out


def check(folder: Path, setup: str, release: int) -> bool:
    events, cases, problems = read(folder / f"{setup}.trace")
    if (lost := (folder / f"{setup}.lost").read_text().strip()) != "0":
        problems.append(f"{lost} events lost")
    problems += check_pairs(events) + check_flights(events) + check_journal(events)
    for case in cases:
        problems += check_case(case, setup, release)
    without_request = Counter(
        f"{e.name}({e.comm.split('/')[0].strip()})" for e in events if e.f.get("id") == "0"
    )
    # On f2fs, a write that must wait for a page submits the bio that other tasks have filled.
    shared = setup == "f2fs"
    if any(
        e.name == "bio_add_folio" or (e.name == "bio_submit" and not shared)
        for e in events
        if e.f.get("id") == "0"
    ):
        problems.append("page cache was written without a request")
    counts = Counter(e.name for e in events)
    print(f"{setup}: {'FAILED' if problems else 'ok'}, {len(cases)} cases, {len(events)} events")
    print("  " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    if without_request:
        print(
            "  id 0: "
            + ", ".join(f"{name} {count}" for name, count in sorted(without_request.items()))
        )
    for problem in problems[:40]:
        print(f"  {problem}")
    return not problems


def main() -> int:
    folder = Path(sys.argv[1])
    setups = sys.argv[2:] or sorted(path.stem for path in folder.glob("*.trace"))
    dmesg = (folder / "dmesg").read_text(errors="replace")
    version = re.search(r"Linux version (\d+)\.", dmesg)
    if not version:
        print("dmesg: no line with the kernel's version")
        return 1
    good = all([check(folder, setup, int(version[1])) for setup in setups])
    for line in dmesg.splitlines():
        if BAD_KERNEL.search(line):
            print(f"dmesg: {line}")
            good = False
    return 0 if good and setups else 1


sys.exit(main())
