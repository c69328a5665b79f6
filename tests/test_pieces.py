"""Several inputs: what is a piece goes on where the one before it ended, and what cannot be told apart is refused."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.coretools import ROOT, recording, tables
from tests.test_commands import fails, ok

WAYS = ROOT / "tests" / "data" / "several-recorders"
BTETTO = ROOT / "tests" / "data" / "bpftrace-json" / "btetto-0.27.json.gz"
RING = WAYS / "ring.dat"

# How a line begins that tells of an event: with a number, alone or in JSON.
EVENT = (*"123456789", *(f'{{"type": "printf", "data": "{digit}' for digit in "123456789"))

Rows = list[dict[str, Any]]
Tables = dict[str, Rows]


def made(out: Path, *arguments: str | Path, cwd: Path | None = None) -> Tables:
    ok("convert", "-q", *arguments, "-o", f"{out}/", cwd=cwd)
    return tables(out)


def meta(told: Tables) -> dict[str, str]:
    return {row["key"]: row["value"] for row in told["meta"]}


def figures(told: Tables) -> tuple[Rows, Rows]:
    """All that is told of requests, and what was lost."""
    return told["sync"], [{**row, "example": None} for row in told["loss"]]


def cut(path: Path, at: int, first: Path, second: Path) -> None:
    """A log as two, the first of so many lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join(lines[:at]))
    second.write_bytes(b"".join(lines[at:]))


def pieces_of(path: Path, tmp_path: Path, step: int, begin: int) -> None:
    """Wherever a log is cut between events, its pieces give what it gives."""
    lines = path.read_text().splitlines()
    whole = figures(made(tmp_path / "whole", path))
    first, second = tmp_path / f"1{path.suffix}", tmp_path / f"2{path.suffix}"
    for place in range(begin, len(lines), step):
        # Stacks belong to the line before them.
        at = next(n for n in range(place, len(lines)) if lines[n].startswith(EVENT))
        cut(path, at, first, second)
        assert figures(made(tmp_path / "pieces", first, second)) == whole, at


@pytest.mark.parametrize("name", ["run/events.log", "strace.log"])
def test_a_log_may_be_cut_anywhere(name: str, tmp_path: Path) -> None:
    """The header, in which our recorder says how it writes names and that it counts, is in the first piece alone; so are
    the opens of the files that strace tells of by their descriptors, and the begin of a call that another thread interrupts."""
    lines = (WAYS / name).read_bytes().splitlines()
    # Behind the header, whose mounts are no lines of events.
    begin = max((n for n, line in enumerate(lines[:100]) if line.startswith(b"#")), default=0)
    log = tmp_path / "log.txt"
    shutil.copy(WAYS / name, log)
    pieces_of(log, tmp_path, len(lines) // 12, begin + 3)


def test_a_log_may_be_cut_where_a_thread_begins(tmp_path: Path) -> None:
    """Its first line, or the exec of a child, is no begin of a log."""
    log, first, second = (tmp_path / name for name in ("log", "1", "2"))
    shutil.copy(WAYS / "strace.log", log)
    lines = log.read_text().splitlines()
    whole = figures(made(tmp_path / "whole", log))
    seen: set[str] = set()
    places = []
    for number, line in enumerate(lines):
        tid = line.split()[0]
        if number > 0 and (tid not in seen or "execve(" in line):
            places.append(number)
        seen.add(tid)
    assert len(places) >= 5
    for at in places:
        cut(log, at, first, second)
        assert figures(made(tmp_path / "pieces", first, second)) == whole, at


def test_what_our_recorder_prints_as_json_may_be_cut_anywhere(tmp_path: Path) -> None:
    text = (WAYS / "run" / "events.log").read_text().splitlines(keepends=True)
    log = tmp_path / "log.json"
    log.write_text("".join(json.dumps({"type": "printf", "data": line}) + "\n" for line in text))
    begin = max(n for n, line in enumerate(text[:100]) if line.startswith("#"))
    pieces_of(log, tmp_path, len(text) // 4, begin + 3)


def test_pieces_lack_what_all_of_them_lack(tmp_path: Path) -> None:
    """Lines that the recorder counted, and a piece that is missing with its last line."""
    log, first, second = (tmp_path / name for name in ("log", "1", "2"))
    lines = (WAYS / "run" / "events.log").read_bytes().splitlines(keepends=True)
    submits = [
        n for n, line in enumerate(lines) if b" block_bio_queue" in line or b"bio_submit" in line
    ]
    gone = submits[5:8]
    assert len(gone) == 3
    log.write_bytes(b"".join(line for n, line in enumerate(lines) if n not in gone))
    cut(log, 400, first, second)
    missing = {row["reason"]: row["count"] for row in made(tmp_path / "a", first, second)["loss"]}
    assert missing["missing_event"] == 3
    assert "cut_off" not in missing
    alone = {row["reason"]: row["count"] for row in made(tmp_path / "b", first)["loss"]}
    assert alone["cut_off"] == 1
    assert "missing_event" not in alone


def test_a_map_of_another_script_counts_nothing(tmp_path: Path) -> None:
    log = tmp_path / "x.json"
    counts = {"type": "map", "data": {"@events": {"fsync": 500, "fdatasync": 7, "read": 9}}}
    plain = gzip.decompress(BTETTO.read_bytes())
    log.write_bytes(plain + json.dumps(counts).encode() + b"\n")
    assert not made(tmp_path / "a", log)["loss"]


def test_what_two_logs_tell_is_not_read_back_from_one(tmp_path: Path) -> None:
    both = tmp_path / "x.events.jsonl"
    ok("convert", "-q", RING, WAYS / "disk.blktrace.0", "-o", both)
    message = fails(3, "convert", both, "-o", tmp_path / "x.csv")
    assert "the low-level log of several recordings" in message
    assert "all in one command" in message
    assert not (tmp_path / "x.csv").exists()
    # Files of one recording are no such thing.
    one = tmp_path / "y.events.jsonl"
    ok("convert", "-q", WAYS / "disk.blktrace.0", WAYS / "disk.blktrace.1", RING, "-o", both)
    ok("convert", "-q", RING, "-o", one)
    assert len(made(tmp_path / "y", one)["sync"]) == 40


def by_processes(folder: Path) -> Path:
    """The calls of a recording as tuples that tell the process alone."""
    log = folder / "pid.json"
    with log.open("w") as out:
        for row in sorted(made(folder / "t", RING)["call"], key=lambda row: row["ts_ns"]):
            for kind, ts in (("BEGIN", row["ts_ns"]), ("END", row["ts_ns"] + row["dur_ns"])):
                event = [["name", row["op"]], ["type", kind], ["ts", ts], ["pid", 200]]
                out.write(json.dumps({"type": "value", "data": ["track_event", *event]}) + "\n")
    return log


def test_processes_beside_threads_are_refused(tmp_path: Path) -> None:
    log = by_processes(tmp_path)
    for inputs in ([RING, log], [log, RING], [WAYS / "run", WAYS / "strace.log", log]):
        message = fails(3, "convert", *inputs, "--offset", f"{log}=0", "-o", tmp_path / "x.csv")
        assert f"{log} records process ids" in message
        assert "`tid` in bpftrace's tuples" in message
        told = json.loads(ok("inspect", "--format", "json", *inputs, "--offset", f"{log}=0"))
        together = told["together"]
        assert not together["convertible"]
        assert together["clocks"] is None
        assert "records process ids" in together["text"]
    message = fails(
        3, "convert", WAYS / "strace.log", log, "--pid-is", "process", "-o", tmp_path / "x.csv"
    )
    assert "records process ids" in message


def test_ids_are_those_of_what_syncs(tmp_path: Path) -> None:
    """A script prints other things, too, with other ids."""
    plain = gzip.decompress(BTETTO.read_bytes())
    want = [
        {k: v for k, v in row.items() if k != "sync_id"}
        for row in made(tmp_path / "a", BTETTO)["sync"]
    ]
    other = [["name", "x"], ["type", "INSTANT"], ["ts", 346200000000], ["pid", 279]]
    line = json.dumps({"type": "value", "data": ["track_event", *other]}).encode() + b"\n"
    head, rest = plain.split(b"\n", 1)
    log = tmp_path / "x.json"
    # More of them than are looked at to tell the format.
    log.write_bytes(head + b"\n" + line * 900 + rest)
    have = [
        {k: v for k, v in row.items() if k != "sync_id"}
        for row in made(tmp_path / "b", log)["sync"]
    ]
    assert have == want
    # Without ids of threads nobody's bios are given to a request of a process.
    without = b"".join(
        json.dumps(drop_tid(json.loads(text))).encode() + b"\n"
        for text in plain.splitlines()
        if text.startswith(b"{")
    )
    other.append(["tid", 280])
    line = json.dumps({"type": "value", "data": ["track_event", *other]}).encode() + b"\n"
    log.write_bytes(line + without)
    told = made(tmp_path / "c", log)["sync"]
    assert told
    assert {(row["bytes"], row["dur_ns"]) for row in told} == {(0, None)}


def drop_tid(value: dict[str, Any]) -> dict[str, Any]:
    data = value["data"]
    if isinstance(data, list):
        value["data"] = [
            field for field in data if not (isinstance(field, list) and field[0] == "tid")
        ]
    return value


def test_an_offset_is_of_its_input_however_it_is_called(tmp_path: Path) -> None:
    out, hour = tmp_path / "o", 3_600_000_000_000
    # All of it is an hour later: nothing is joined.
    for name in ("run", "run/", "./run", f"{WAYS}/run/"):
        told = made(out, name, "ring.dat", "--offset", f"{name}=3600s", cwd=WAYS)
        times = [row["ts_ns"] for row in told["sync"]]
        assert len(times) == 80, name
        assert max(times) - min(times) > hour
    # A file in the run's folder that is an input of its own has its own times.
    folder = tmp_path / "run"
    shutil.copytree(WAYS / "run", folder)
    shutil.copy(RING, folder)
    offsets = [("--offset", f"{folder}=10s"), ("--offset", f"{folder}/ring.dat=0")]
    for given in (offsets, offsets[::-1], offsets[:1]):
        arguments = [word for pair in given for word in pair]
        told = made(out, folder, folder / "ring.dat", *arguments)
        first = min(row["ts_ns"] for row in made(tmp_path / "one", RING)["sync"])
        assert len(told["sync"]) == 80
        assert min(row["ts_ns"] for row in told["sync"]) == first


def test_an_offset_of_a_part_is_that_of_its_recording(tmp_path: Path) -> None:
    parts = [WAYS / "disk.blktrace.0", WAYS / "disk.blktrace.1"]
    message = fails(
        3, "convert", *parts, RING, "--offset", f"{parts[1]}=3600s", "-o", tmp_path / "x.csv"
    )
    assert f"give the offset for that file: --offset {parts[0]}=..." in message
    given = [word for part in parts for word in ("--offset", f"{part}=3600s")]
    told = made(tmp_path / "o", *parts, RING, *given)
    assert len(told["bio"]) == 2 * 173
    # The CPU that saw nothing has an empty file, and another is read in its place.
    shutil.copy(parts[0], tmp_path / "d.blktrace.1")
    empty = tmp_path / "d.blktrace.0"
    empty.touch()
    told = made(tmp_path / "o", empty, RING, "--offset", f"{empty}=3600s")
    assert max(row["ts_ns"] for row in told["bio"]) > 3_600_000_000_000


def test_moved_times_are_of_no_known_clock(tmp_path: Path) -> None:
    log = WAYS / "run" / "events.log"
    assert meta(made(tmp_path / "a", log))["clock"] == "boottime"
    assert meta(made(tmp_path / "b", log, "--offset", f"{log}=10s"))["clock"] == "unknown"


def threads(folder: Path) -> list[Path]:
    """The log of a run as `strace -ff` writes it, a file a thread."""
    lines: dict[str, list[str]] = {}
    begun: dict[str, str] = {}
    for line in (WAYS / "strace.log").read_text().splitlines():
        tid, rest = line.split(None, 1)
        time, call = rest.split(" ", 1)
        if call.endswith("<unfinished ...>"):
            begun[tid] = f"{time} {call.removesuffix('<unfinished ...>').rstrip()}"
            continue
        if call.startswith("<... "):
            rest = begun.pop(tid) + call[call.index("resumed>") + len("resumed>") :]
        lines.setdefault(tid, []).append(rest)
    files = []
    for tid, own in lines.items():
        files.append(folder / f"x.{tid}")
        files[-1].write_text("\n".join(own) + "\n")
    return files


def test_files_of_threads_may_be_packed(tmp_path: Path) -> None:
    files = threads(tmp_path)
    assert len(files) == 5
    want = figures(made(tmp_path / "a", *files))
    assert sorted({row["tid"] for row in want[0]}) == sorted(
        {row["tid"] for row in made(tmp_path / "w", WAYS / "strace.log")["sync"]}
    )
    packed = []
    for file in files:
        packed.append(file.with_name(file.name + ".gz"))
        packed[-1].write_bytes(gzip.compress(file.read_bytes()))
    assert figures(made(tmp_path / "b", *packed)) == want
    joint = made(tmp_path / "c", WAYS / "run", *packed)["sync"]
    assert len(joint) == 40
    # One of them makes no sync call, which the others do.
    assert len(ok("inspect", *files).split("Their clock is the same")) == 2


def test_threads_that_are_not_known_are_not_joined(tmp_path: Path) -> None:
    files = threads(tmp_path)[1:3]
    # A date is no thread.
    names = [("one.log", "two.log"), ("r.20261122", "r.20261123")]
    for pair in names:
        copies = [
            shutil.copy(file, tmp_path / name) for file, name in zip(files, pair, strict=True)
        ]
        message = fails(3, "convert", *copies, "-o", tmp_path / "x.csv")
        assert "does not say which thread makes it" in message
        assert "give it the name that strace -ff gives (NAME.PID)" in message
        assert fails(3, "convert", WAYS / "run", copies[0], "-o", tmp_path / "x.csv")
        together = json.loads(ok("inspect", "--format", "json", *copies))["together"]
        assert not together["convertible"]
        assert "do not record their thread" in together["text"]
        assert {row["tid"] for row in made(tmp_path / "o", copies[0])["sync"]} == {None}


def test_a_small_copy_is_one_too(tmp_path: Path) -> None:
    first, second = tmp_path / "1.log", tmp_path / "2.log"
    first.write_bytes(b"".join(recording("small1.log").splitlines(keepends=True)[:30]))
    shutil.copy(first, second)
    packed = tmp_path / "3.log.gz"
    packed.write_bytes(gzip.compress(first.read_bytes()))
    assert first.stat().st_size < 4096
    for other in (second, packed):
        message = fails(3, "convert", first, other, "-o", tmp_path / "x.csv")
        assert f"{other} is the same log as {first}" in message
    message = fails(3, "convert", first, "-", "-o", tmp_path / "x.csv", stdin=first.read_bytes())
    assert "is the same log as" in message
    # Two threads may have done the same at the same time, as far as the clock shows.
    line = "1795196963.000150 fsync(3) = 0 <0.000089>\n"
    for tid in (11, 12):
        (tmp_path / f"x.{tid}").write_text(line)
    assert len(made(tmp_path / "o", tmp_path / "x.11", tmp_path / "x.12")["sync"]) == 2


def test_words_beside_numbers_are_read(tmp_path: Path) -> None:
    """`strace -X verbose`"""
    log = tmp_path / "v.log"
    log.write_text(
        '7  1795373395.268982 openat(-100 /* AT_FDCWD */, "/a/dd", 0x1042 /* O_RDWR|O_CREAT|O_DSYNC */, 0644) = 3 <0.000033>\n'
        '7  1795373395.269018 write(3, "x", 1) = 1 <0.000149>\n'
        '7  1795373395.269218 openat(-100 /* AT_FDCWD */, "/a/ee", 0x42 /* O_RDWR|O_CREAT */, 0644) = 4 <0.000033>\n'
        '7  1795373395.269418 write(4, "x", 1) = 1 <0.000149>\n'
        '7  1795373395.269518 openat(-100 /* AT_FDCWD */</a, (b>, "ff", 0x1041 /* O_WRONLY|O_CREAT|O_DSYNC */, 0644) = 5</a, (b/ff> <0.000033>\n'
        '7  1795373395.269618 write(5</a, (b/ff>, "x", 1) = 1 <0.000149>\n'
        "7  1795373395.269975 fsync(4) = 0 <0.000156>\n"
    )
    told = made(tmp_path / "o", log)
    assert [(row["op"], row["path"]) for row in told["sync"]] == [
        ("write", "/a/dd"),
        ("write", "/a, (b/ff"),
        ("fsync", "/a/ee"),
    ]
    assert {row["reason"] for row in told["loss"]} == {"call_only"}


def strace_of(path: Path, tid: int, begin_s: int, times: str = "day") -> Path:
    """Two syncs a second apart of a file that is opened first; without execve, as of a program that runs already."""
    lines = []
    calls = [
        f'openat(AT_FDCWD, "/{tid}", O_RDWR) = 3',
        "fsync(3) = 0",
        "fsync(3) = 0",
    ]
    for number, call in enumerate(calls):
        at = begin_s + number
        shown = {
            "day": f"{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}.000000",
            "unix": f"{1795132800 + at}.000000",
            "relative": f"{'':5}{1 if number else at}.000000",
        }[times]
        lines.append(f"{tid}  {shown} {call} <0.010000>\n")
    path.write_text("".join(lines))
    return path


def seconds(told: Tables) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for row in told["sync"]:
        found.setdefault(row["tid"], []).append(row["ts_ns"] / 1e9)
    return found


@pytest.mark.parametrize(
    ("first", "second", "offset"),
    [("day", "day", "0"), ("day", "unix", "-1795132800s"), ("relative", "unix", "-1795132800s")],
)
def test_another_program_is_no_piece(first: str, second: str, offset: str, tmp_path: Path) -> None:
    """Two that ran at the same time: neither the day nor the files of the one are those of the other."""
    one = strace_of(tmp_path / "one.log", 1000, 40_000, first)
    other = strace_of(tmp_path / "other.log", 2000, 32_000, second)
    told = made(tmp_path / "o", one, other, "--offset", f"{other}={offset}")
    assert seconds(told) == {1000: [40_001, 40_002], 2000: [32_001, 32_002]}
    assert {(row["tid"], row["path"]) for row in told["sync"]} == {(1000, "/1000"), (2000, "/2000")}


def test_files_of_one_program_are_not_those_of_another(tmp_path: Path) -> None:
    """The first thread of each has no number in its log: it is not the same one."""
    one, other = tmp_path / "one.log", tmp_path / "other.log"
    one.write_text(
        '1795132800.000000 openat(AT_FDCWD, "/one", O_RDWR|O_DSYNC) = 3 <0.000010>\n'
        "1795132800.100000 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 78 <0.000010>\n"
        "[pid    77] 1795132800.200000 fsync(3) = 0 <0.000010>\n"
    )
    other.write_text(
        '1795132801.000000 write(3, "x", 1) = 1 <0.000010>\n'
        "1795132801.100000 fsync(3) = 0 <0.000010>\n"
        "1795132801.200000 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 99 <0.000010>\n"
        "[pid    98] 1795132801.300000 fsync(3) = 0 <0.000010>\n"
    )
    rows = made(tmp_path / "o", one, other)["sync"]
    assert [(row["op"], row["path"]) for row in rows] == [
        ("fsync", "/one"),
        ("fsync", None),
        ("fsync", None),
    ]


def test_a_thread_may_be_named_late(tmp_path: Path) -> None:
    """strace leaves the number out until there is a second thread, which may be long after the begin."""
    log = tmp_path / "term.log"
    reads = "".join(f'1795132800.{n:06} read(3, "", 4096) = 0 <0.000010>\n' for n in range(1500))
    log.write_text(
        reads
        + '1795132801.000000 openat(AT_FDCWD, "/data", O_RDWR) = 3 <0.000010>\n'
        + "1795132801.100000 clone(child_stack=NULL, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 77 <0.000010>\n"
        + "[pid    76] 1795132801.200000 fsync(3) = 0 <0.000010>\n"
    )
    assert log.stat().st_size > 1 << 16
    beside = WAYS / "disk.blktrace.0"
    rows = made(tmp_path / "o", log, beside, "--offset", f"{beside}=0")["sync"]
    assert [(row["tid"], row["path"]) for row in rows] == [(76, "/data")]


def test_calls_of_a_process_overlap_wherever_it_is_told(tmp_path: Path) -> None:
    """Two threads of one process are in a call each: whose is whose is not told, and is not guessed from the begin of the log."""
    log = tmp_path / "x.json"
    times = [("BEGIN", 500), ("END", 900), ("BEGIN", 1000), ("BEGIN", 1100), ("END", 1200)]
    calls = [[["name", "fsync"], ["type", kind], ["ts", ts], ["pid", 5]] for kind, ts in times]
    other = [["name", "sched_switch"], ["type", "INSTANT"], ["ts", 1], ["pid", 5]]
    told = []
    for before in (0, 900):
        lines = [
            {"type": "value", "data": ["track_event", *event]} for event in [other] * before + calls
        ]
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        rows = made(tmp_path / "o", log)["call"]
        told.append([(row["ts_ns"], row["dur_ns"]) for row in rows])
    assert told[0] == told[1]
    assert sorted(told[0], key=str) == sorted([(500, 400), (1000, None), (1100, None)], key=str)


def test_a_log_that_begins_anew_is_read_as_it_says_itself(tmp_path: Path) -> None:
    """That of the thesis's script, behind one of our recorder for stock kernels, whose edges are inferred."""
    thesis = tmp_path / "small1.log"
    thesis.write_bytes(recording("small1.log"))
    stock = ROOT / "tests" / "data" / "bpf" / "stock-tracepoints.log.gz"
    want = {(row["ts_ns"], row["confidence"]) for row in made(tmp_path / "a", thesis)["sync"]}
    have = {
        (row["ts_ns"], row["confidence"]) for row in made(tmp_path / "b", stock, thesis)["sync"]
    }
    assert want <= have
    assert {confidence for _, confidence in want} == {"exact"}
