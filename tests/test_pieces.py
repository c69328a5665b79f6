"""Several inputs: a piece continues the input before it, and inputs whose threads are ambiguous are refused."""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from syncline import _core

from tests.coretools import ROOT, recording, tables
from tests.test_commands import fails, ok

DATA = ROOT / "tests" / "data" / "several-recorders"
BTETTO = ROOT / "tests" / "data" / "bpftrace-json" / "btetto-0.27.json.gz"
RING = DATA / "ring.dat"

# Beginnings of a line that holds an event: a number, in plain text or in JSON.
EVENT = (*"123456789", *(f'{{"type": "printf", "data": "{digit}' for digit in "123456789"))

Rows = list[dict[str, Any]]
Tables = dict[str, Rows]


def convert_inputs(out: Path, *arguments: str | Path, cwd: Path | None = None) -> Tables:
    ok("convert", "-q", *arguments, "-o", f"{out}/", cwd=cwd)
    return tables(out)


def meta(result: Tables) -> dict[str, str]:
    return {row["key"]: row["value"] for row in result["meta"]}


def figures(result: Tables) -> tuple[Rows, Rows]:
    """The requests and the losses, without the examples, which contain paths."""
    return result["sync"], [{**row, "example": None} for row in result["loss"]]


def cut(path: Path, at: int, first: Path, second: Path) -> None:
    """Splits a log into two files; the first has `at` lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join(lines[:at]))
    second.write_bytes(b"".join(lines[at:]))


def assert_pieces_equal_whole(path: Path, tmp_path: Path, step: int, begin: int) -> None:
    """Checks that two pieces of a log, cut between any events, give the tables of the whole."""
    lines = path.read_text().splitlines()
    whole = figures(convert_inputs(tmp_path / "whole", path))
    first, second = tmp_path / f"1{path.suffix}", tmp_path / f"2{path.suffix}"
    for place in range(begin, len(lines), step):
        # Stacks belong to the line before them.
        at = next(n for n in range(place, len(lines)) if lines[n].startswith(EVENT))
        cut(path, at, first, second)
        assert figures(convert_inputs(tmp_path / "pieces", first, second)) == whole, at


@pytest.mark.parametrize("name", ["run/events.log", "strace.log"])
def test_a_log_may_be_cut_between_any_events(name: str, tmp_path: Path) -> None:
    """Only the first piece has the header, with the recorder's encoding of names and its own counts.

    Only the first piece has the opens of files that strace then names by descriptor, and the begin of an interrupted call.
    """
    lines = (DATA / name).read_bytes().splitlines()
    # After the header. Its lines of mounts are not events.
    begin = max((n for n, line in enumerate(lines[:100]) if line.startswith(b"#")), default=0)
    log = tmp_path / "log.txt"
    shutil.copy(DATA / name, log)
    assert_pieces_equal_whole(log, tmp_path, len(lines) // 12, begin + 3)


def test_a_log_may_be_cut_where_a_thread_begins(tmp_path: Path) -> None:
    """The first line of a thread and the exec of a child do not begin a new log."""
    log, first, second = (tmp_path / name for name in ("log", "1", "2"))
    shutil.copy(DATA / "strace.log", log)
    lines = log.read_text().splitlines()
    whole = figures(convert_inputs(tmp_path / "whole", log))
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
        assert figures(convert_inputs(tmp_path / "pieces", first, second)) == whole, at


def test_json_output_of_our_recorder_may_be_cut_between_any_events(tmp_path: Path) -> None:
    text = (DATA / "run" / "events.log").read_text().splitlines(keepends=True)
    log = tmp_path / "log.json"
    log.write_text("".join(json.dumps({"type": "printf", "data": line}) + "\n" for line in text))
    begin = max(n for n, line in enumerate(text[:100]) if line.startswith("#"))
    assert_pieces_equal_whole(log, tmp_path, len(text) // 4, begin + 3)


def test_losses_are_counted_over_all_pieces(tmp_path: Path) -> None:
    """First, lines that the recorder counted are missing; then the last piece, which has the counts."""
    log, first, second = (tmp_path / name for name in ("log", "1", "2"))
    lines = (DATA / "run" / "events.log").read_bytes().splitlines(keepends=True)
    submits = [
        n for n, line in enumerate(lines) if b" block_bio_queue" in line or b"bio_submit" in line
    ]
    removed = submits[5:8]
    assert len(removed) == 3
    log.write_bytes(b"".join(line for n, line in enumerate(lines) if n not in removed))
    cut(log, 400, first, second)
    missing = {
        row["reason"]: row["count"] for row in convert_inputs(tmp_path / "a", first, second)["loss"]
    }
    assert missing["missing_event"] == 3
    assert "cut_off" not in missing
    first_only = {
        row["reason"]: row["count"] for row in convert_inputs(tmp_path / "b", first)["loss"]
    }
    assert first_only["cut_off"] == 1
    assert "missing_event" not in first_only


def test_a_map_of_another_script_is_not_taken_for_own_counts(tmp_path: Path) -> None:
    log = tmp_path / "x.json"
    counts = {"type": "map", "data": {"@events": {"fsync": 500, "fdatasync": 7, "read": 9}}}
    plain = gzip.decompress(BTETTO.read_bytes())
    log.write_bytes(plain + json.dumps(counts).encode() + b"\n")
    assert not convert_inputs(tmp_path / "a", log)["loss"]


def test_the_low_level_log_of_several_recordings_is_refused_as_input(tmp_path: Path) -> None:
    both = tmp_path / "x.events.jsonl"
    ok("convert", "-q", RING, DATA / "disk.blktrace.0", "-o", both)
    message = fails(3, "convert", both, "-o", tmp_path / "x.csv")
    assert "the low-level log of several recordings" in message
    assert "all in one command" in message
    assert not (tmp_path / "x.csv").exists()
    # Files of one recording are not several recordings.
    one = tmp_path / "y.events.jsonl"
    ok("convert", "-q", DATA / "disk.blktrace.0", DATA / "disk.blktrace.1", RING, "-o", both)
    ok("convert", "-q", RING, "-o", one)
    assert len(convert_inputs(tmp_path / "y", one)["sync"]) == 40


def write_calls_of_process(folder: Path) -> Path:
    """Writes the calls of a recording as tuples that have only the process id."""
    log = folder / "pid.json"
    with log.open("w") as out:
        for row in sorted(convert_inputs(folder / "t", RING)["call"], key=lambda row: row["ts_ns"]):
            for kind, ts in (("BEGIN", row["ts_ns"]), ("END", row["ts_ns"] + row["dur_ns"])):
                event = [["name", row["op"]], ["type", kind], ["ts", ts], ["pid", 200]]
                out.write(json.dumps({"type": "value", "data": ["track_event", *event]}) + "\n")
    return log


def test_process_ids_together_with_thread_ids_are_refused(tmp_path: Path) -> None:
    log = write_calls_of_process(tmp_path)
    for inputs in ([RING, log], [log, RING], [DATA / "run", DATA / "strace.log", log]):
        message = fails(3, "convert", *inputs, "--offset", f"{log}=0", "-o", tmp_path / "x.csv")
        assert f"{log} records process ids" in message
        assert "`tid` in bpftrace's tuples" in message
        output = json.loads(ok("inspect", "--format", "json", *inputs, "--offset", f"{log}=0"))
        together = output["together"]
        assert not together["convertible"]
        assert together["clocks"] is None
        assert "records process ids" in together["text"]
    message = fails(
        3, "convert", DATA / "strace.log", log, "--pid-is", "process", "-o", tmp_path / "x.csv"
    )
    assert "records process ids" in message


TESTS = Path(__file__).parent / "data"


@pytest.mark.parametrize("to", ["x.csv", "x.pftrace", "x.events.jsonl"])
@pytest.mark.parametrize(
    "name",
    [
        "tracecmd/small4.dat",
        "ftrace/small1.trace.txt.gz",
        "strace/small4.log",
        "strace/odd-each.26875",
        "bpftrace-json/btetto.json.gz",
        "marks/marks.dat.gz",
    ],
)
def test_ids_of_threads_are_not_read_as_those_of_processes(
    name: str, to: str, tmp_path: Path
) -> None:
    """The calls of all threads of a process would be mixed up."""
    source = BTETTO if name.startswith("bpftrace-json") else TESTS / name
    message = fails(2, "convert", source, "--pid-is", "process", "-o", tmp_path / to)
    assert "its events name their threads, so --pid-is process is wrong for it" in message
    assert "leave out --pid-is" in message
    assert not (tmp_path / to).exists()
    assert fails(2, "report", source, "--pid-is", "process", "summary")


def test_ids_of_a_low_level_log_of_threads_are_not_those_of_processes(tmp_path: Path) -> None:
    log = tmp_path / "x.events.jsonl"
    ok("convert", "-q", TESTS / "tracecmd" / "small4.dat", "-o", log)
    assert "name their threads" in fails(
        2, "convert", log, "--pid-is", "process", "-o", tmp_path / "x.csv"
    )


@pytest.mark.parametrize(
    "name",
    ["thesis/small4.log", "strace/odd-stacks.log", "marks/marks.trace.txt.gz", "perf/stacks"],
)
def test_a_log_that_is_cut_inside_a_stack_is_read(name: str, tmp_path: Path) -> None:
    """Also if a piece holds only a part of a stack."""
    if name.startswith("perf"):
        data = STACKS_OF_PERF
    else:
        data = (TESTS / name).read_bytes()
        data = gzip.decompress(data) if name.endswith(".gz") else data
    rows = data.splitlines(keepends=True)
    inside = [n for n, row in enumerate(rows) if n and row.startswith((b" ", b"\t", b" =>"))]
    inside = [n for n in inside if is_frame(rows[n]) and is_frame(rows[n - 1])]
    assert inside
    first = inside[len(inside) // 2]
    after = next((n for n in range(first, len(rows)) if not is_frame(rows[n])), len(rows))
    whole, _ = synced(tmp_path / "whole", [data])
    # A part of perf's or ftrace's text is a log of its own, and needs an event.
    is_whole_log = name.startswith(("marks", "perf"))
    for cuts in (
        ([first],) if is_whole_log else ([first], [first, after], [first, first + 1, after])
    ):
        edges = [0, *cuts, len(rows)]
        pieces = [b"".join(rows[a:b]) for a, b in itertools.pairwise(edges) if a < b]
        found, unparsed = synced(tmp_path / "pieces", pieces)
        assert found == whole
        # The rest of the stack belongs to no call of its piece.
        assert unparsed <= after - first


STACKS_OF_PERF = b"".join(
    b"wl     254 [000]    52.%d:      syscalls:sys_enter_fsync: fd: 0x00000003\n"
    b"\tffffffff81 do_fsync+0x7 ([kernel.kallsyms])\n\tffffffff82 entry+0x7 ([kernel.kallsyms])\n\n"
    b"wl     254 [000]    52.%d:      syscalls:sys_exit_fsync: 0x0\n\n" % (us, us + 5)
    for us in range(521_000, 521_100, 10)
)


def is_frame(row: bytes) -> bool:
    # The lines of events of the ring buffer begin with spaces, too.
    is_indented = row.startswith(b"        ") and b" [0" not in row[:60]
    return is_indented or row.startswith((b"\t", b" => ", b" > "))


def synced(folder: Path, pieces: list[bytes]) -> tuple[list[tuple[Any, ...]], int]:
    """Call, start and length of each sync of the pieces of a log, and the number of unparsed lines."""
    folder.mkdir(exist_ok=True)
    paths = []
    for number, piece in enumerate(pieces):
        paths.append(folder / f"log.part{number}")
        paths[-1].write_bytes(piece)
    summary = _core.convert([str(path) for path in paths], f"{folder}/out/")
    unparsed = sum(loss["count"] for loss in summary["losses"] if loss["reason"] == "unparsed_line")
    rows = tables(folder / "out")["sync"]
    return [(row["op"], row["tid"], row["ts_ns"], row["dur_ns"]) for row in rows], unparsed


def test_ids_are_those_of_the_sync_events(tmp_path: Path) -> None:
    """A script also prints other events, with ids of another kind."""
    plain = gzip.decompress(BTETTO.read_bytes())
    expected = [
        {k: v for k, v in row.items() if k != "sync_id"}
        for row in convert_inputs(tmp_path / "a", BTETTO)["sync"]
    ]
    other = [["name", "x"], ["type", "INSTANT"], ["ts", 346200000000], ["pid", 279]]
    line = json.dumps({"type": "value", "data": ["track_event", *other]}).encode() + b"\n"
    head, rest = plain.split(b"\n", 1)
    log = tmp_path / "x.json"
    # More of them than the detection of the format reads.
    log.write_bytes(head + b"\n" + line * 900 + rest)
    found = [
        {k: v for k, v in row.items() if k != "sync_id"}
        for row in convert_inputs(tmp_path / "b", log)["sync"]
    ]
    assert found == expected
    # Without thread ids, no bio is attributed to a request of a process, so how many bytes it wrote is not known.
    without = b"".join(
        json.dumps(drop_tid(json.loads(text))).encode() + b"\n"
        for text in plain.splitlines()
        if text.startswith(b"{")
    )
    other.append(["tid", 280])
    line = json.dumps({"type": "value", "data": ["track_event", *other]}).encode() + b"\n"
    log.write_bytes(line + without)
    result = convert_inputs(tmp_path / "c", log)["sync"]
    assert result
    assert {(row["bytes"], row["dur_ns"]) for row in result} == {(None, None)}


def drop_tid(value: dict[str, Any]) -> dict[str, Any]:
    data = value["data"]
    if isinstance(data, list):
        value["data"] = [
            field for field in data if not (isinstance(field, list) and field[0] == "tid")
        ]
    return value


def test_an_offset_applies_to_its_input_however_the_path_is_written(tmp_path: Path) -> None:
    out, hour = tmp_path / "o", 3_600_000_000_000
    # All of its events are an hour later, so that no request has events of both.
    for name in ("run", "run/", "./run", f"{DATA}/run/"):
        result = convert_inputs(out, name, "ring.dat", "--offset", f"{name}=3600s", cwd=DATA)
        times = [row["ts_ns"] for row in result["sync"]]
        assert len(times) == 80, name
        assert max(times) - min(times) > hour
    # A file in the run directory that is an input of its own has an offset of its own.
    folder = tmp_path / "run"
    shutil.copytree(DATA / "run", folder)
    shutil.copy(RING, folder)
    offsets = [("--offset", f"{folder}=10s"), ("--offset", f"{folder}/ring.dat=0")]
    for given in (offsets, offsets[::-1], offsets[:1]):
        arguments = [argument for pair in given for argument in pair]
        result = convert_inputs(out, folder, folder / "ring.dat", *arguments)
        first = min(row["ts_ns"] for row in convert_inputs(tmp_path / "one", RING)["sync"])
        assert len(result["sync"]) == 80
        assert min(row["ts_ns"] for row in result["sync"]) == first


def test_the_offset_of_a_recording_is_given_for_its_first_file(tmp_path: Path) -> None:
    parts = [DATA / "disk.blktrace.0", DATA / "disk.blktrace.1"]
    message = fails(
        3, "convert", *parts, RING, "--offset", f"{parts[1]}=3600s", "-o", tmp_path / "x.csv"
    )
    assert f"give the offset for that file: --offset {parts[0]}=..." in message
    given = [argument for part in parts for argument in ("--offset", f"{part}=3600s")]
    result = convert_inputs(tmp_path / "o", *parts, RING, *given)
    # 173 writes, 8 reads and a flush.
    assert len(result["bio"]) == 2 * (173 + 8 + 1)
    # A CPU without events has an empty file. Syncline reads another file of the recording instead.
    shutil.copy(parts[0], tmp_path / "d.blktrace.1")
    empty = tmp_path / "d.blktrace.0"
    empty.touch()
    result = convert_inputs(tmp_path / "o", empty, RING, "--offset", f"{empty}=3600s")
    assert max(row["ts_ns"] for row in result["bio"]) > 3_600_000_000_000


def test_a_log_with_an_offset_has_an_unknown_clock(tmp_path: Path) -> None:
    log = DATA / "run" / "events.log"
    assert meta(convert_inputs(tmp_path / "a", log))["clock"] == "boottime"
    assert meta(convert_inputs(tmp_path / "b", log, "--offset", f"{log}=10s"))["clock"] == "unknown"


def write_thread_files(folder: Path) -> list[Path]:
    """Writes the log of the run as `strace -ff` does: a file for each thread."""
    lines: dict[str, list[str]] = {}
    entries: dict[str, str] = {}
    for line in (DATA / "strace.log").read_text().splitlines():
        tid, rest = line.split(None, 1)
        time, call = rest.split(" ", 1)
        if call.endswith("<unfinished ...>"):
            entries[tid] = f"{time} {call.removesuffix('<unfinished ...>').rstrip()}"
            continue
        if call.startswith("<... "):
            rest = entries.pop(tid) + call[call.index("resumed>") + len("resumed>") :]
        lines.setdefault(tid, []).append(rest)
    files = []
    for tid, thread_lines in lines.items():
        files.append(folder / f"x.{tid}")
        files[-1].write_text("\n".join(thread_lines) + "\n")
    return files


def test_files_of_threads_may_be_compressed(tmp_path: Path) -> None:
    files = write_thread_files(tmp_path)
    assert len(files) == 5
    expected = figures(convert_inputs(tmp_path / "a", *files))
    assert sorted({row["tid"] for row in expected[0]}) == sorted(
        {row["tid"] for row in convert_inputs(tmp_path / "w", DATA / "strace.log")["sync"]}
    )
    packed = []
    for file in files:
        packed.append(file.with_name(file.name + ".gz"))
        packed[-1].write_bytes(gzip.compress(file.read_bytes()))
    assert figures(convert_inputs(tmp_path / "b", *packed)) == expected
    joint = convert_inputs(tmp_path / "c", DATA / "run", *packed)["sync"]
    assert len(joint) == 40
    # One of the threads makes no sync call.
    assert len(ok("inspect", *files).split("They record the same clock")) == 2


def test_files_of_unknown_threads_are_not_converted_together(tmp_path: Path) -> None:
    files = write_thread_files(tmp_path)[1:3]
    # The suffix of a name may be a date, not a thread id.
    names = [("one.log", "two.log"), ("r.20261122", "r.20261123")]
    for pair in names:
        copies = [
            shutil.copy(file, tmp_path / name) for file, name in zip(files, pair, strict=True)
        ]
        message = fails(3, "convert", *copies, "-o", tmp_path / "x.csv")
        assert "does not say which thread makes it" in message
        assert "give it the name that strace -ff gives (NAME.PID)" in message
        assert fails(3, "convert", DATA / "run", copies[0], "-o", tmp_path / "x.csv")
        together = json.loads(ok("inspect", "--format", "json", *copies))["together"]
        assert not together["convertible"]
        assert "do not record their thread" in together["text"]
        assert {row["tid"] for row in convert_inputs(tmp_path / "o", copies[0])["sync"]} == {None}


def test_a_small_copy_of_a_log_is_refused(tmp_path: Path) -> None:
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
    # Two threads may make the same call in the same microsecond.
    line = "1795196963.000150 fsync(3) = 0 <0.000089>\n"
    for tid in (11, 12):
        (tmp_path / f"x.{tid}").write_text(line)
    assert len(convert_inputs(tmp_path / "o", tmp_path / "x.11", tmp_path / "x.12")["sync"]) == 2


def test_names_in_comments_after_numbers_are_read(tmp_path: Path) -> None:
    """As `strace -X verbose` prints them."""
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
    result = convert_inputs(tmp_path / "o", log)
    assert [(row["op"], row["path"]) for row in result["sync"]] == [
        ("write", "/a/dd"),
        ("write", "/a, (b/ff"),
        ("fsync", "/a/ee"),
    ]
    assert {row["reason"] for row in result["loss"]} == {"call_only"}


def write_strace(path: Path, tid: int, begin_s: int, times: str = "day") -> Path:
    """Writes an open and two syncs at intervals of one second.

    There is no execve, as when strace attaches to a running program.
    """
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


def seconds(result: Tables) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for row in result["sync"]:
        found.setdefault(row["tid"], []).append(row["ts_ns"] / 1e9)
    return found


@pytest.mark.parametrize(
    ("first", "second", "offset"),
    [("day", "day", "0"), ("day", "unix", "-1795132800s"), ("relative", "unix", "-1795132800s")],
)
def test_a_log_of_another_program_is_not_a_piece(
    first: str, second: str, offset: str, tmp_path: Path
) -> None:
    """Neither the date nor the open files of one program apply to another program's log."""
    one = write_strace(tmp_path / "one.log", 1000, 40_000, first)
    other = write_strace(tmp_path / "other.log", 2000, 32_000, second)
    result = convert_inputs(tmp_path / "o", one, other, "--offset", f"{other}={offset}")
    assert seconds(result) == {1000: [40_001, 40_002], 2000: [32_001, 32_002]}
    assert {(row["tid"], row["path"]) for row in result["sync"]} == {
        (1000, "/1000"),
        (2000, "/2000"),
    }


def test_descriptors_of_one_program_do_not_apply_to_another(tmp_path: Path) -> None:
    """strace prints no id for the first thread of each program. They are different threads."""
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
    rows = convert_inputs(tmp_path / "o", one, other)["sync"]
    assert [(row["op"], row["path"]) for row in rows] == [
        ("fsync", "/one"),
        ("fsync", None),
        ("fsync", None),
    ]


def test_a_thread_id_may_first_appear_late_in_the_log(tmp_path: Path) -> None:
    """strace prints no thread id until there is a second thread, which may be far into the log."""
    log = tmp_path / "term.log"
    reads = "".join(f'1795132800.{n:06} read(3, "", 4096) = 0 <0.000010>\n' for n in range(1500))
    log.write_text(
        reads
        + '1795132801.000000 openat(AT_FDCWD, "/data", O_RDWR) = 3 <0.000010>\n'
        + "1795132801.100000 clone(child_stack=NULL, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 77 <0.000010>\n"
        + "[pid    76] 1795132801.200000 fsync(3) = 0 <0.000010>\n"
    )
    assert log.stat().st_size > 1 << 16
    other = DATA / "disk.blktrace.0"
    rows = convert_inputs(tmp_path / "o", log, other, "--offset", f"{other}=0")["sync"]
    assert [(row["tid"], row["path"]) for row in rows] == [(76, "/data")]


def test_overlapping_calls_of_a_process_are_not_paired_anywhere_in_the_log(tmp_path: Path) -> None:
    """Two threads of one process are in a call at the same time, and the log does not say which call ends.

    Syncline does not guess, wherever in the log the calls are.
    """
    log = tmp_path / "x.json"
    times = [("BEGIN", 500), ("END", 900), ("BEGIN", 1000), ("BEGIN", 1100), ("END", 1200)]
    calls = [[["name", "fsync"], ["type", kind], ["ts", ts], ["pid", 5]] for kind, ts in times]
    other = [["name", "sched_switch"], ["type", "INSTANT"], ["ts", 1], ["pid", 5]]
    found = []
    for before in (0, 900):
        lines = [
            {"type": "value", "data": ["track_event", *event]} for event in [other] * before + calls
        ]
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        rows = convert_inputs(tmp_path / "o", log)["call"]
        found.append([(row["ts_ns"], row["dur_ns"]) for row in rows])
    assert found[0] == found[1]
    assert sorted(found[0], key=str) == sorted([(500, 400), (1000, None), (1100, None)], key=str)


def test_a_log_with_its_own_header_is_read_by_that_header(tmp_path: Path) -> None:
    """A log of the thesis's script after one of our recorder for stock kernels.

    The times of the stock recorder's requests are inferred, those of the thesis's script are exact.
    """
    thesis = tmp_path / "small1.log"
    thesis.write_bytes(recording("small1.log"))
    stock = ROOT / "tests" / "data" / "bpf" / "stock-tracepoints.log.gz"
    expected = {
        (row["ts_ns"], row["confidence"]) for row in convert_inputs(tmp_path / "a", thesis)["sync"]
    }
    found = {
        (row["ts_ns"], row["confidence"])
        for row in convert_inputs(tmp_path / "b", stock, thesis)["sync"]
    }
    assert expected <= found
    assert {confidence for _, confidence in expected} == {"exact"}
