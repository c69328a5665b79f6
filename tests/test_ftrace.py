"""Text of the ring buffer: recordings against a plain reader, `grep` and trace.dat; every layout; bad input."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syncline import _core

from tests.coretools import convert, tables
from tests.reference import ftrace, thesis, tracedat
from tests.reference.ftrace import Layout
from tests.test_trace_dat import as_text

DATA = Path(__file__).parent / "data"
RECORDINGS = sorted(path.name for path in (DATA / "ftrace").glob("*.txt.gz"))
SMALL4 = DATA / "tracecmd" / "small4.dat"
REPORT = DATA / "tracecmd" / "small4.report.txt.gz"
# Columns of a request whose precision in text is 1 µs.
TIMES = {
    "ts_ns",
    "dur_ns",
    "start_ns",
    "syscall_ns",
    "writeback_ns",
    "before_submit_ns",
    "after_complete_ns",
}


def recording(name: str) -> bytes:
    return gzip.decompress((DATA / "ftrace" / name).read_bytes())


def low_level(folder: Path, data: bytes, name: str = "in.txt") -> list[dict[str, Any]]:
    log = convert(folder, data, "out.events.jsonl", name=name)
    return [json.loads(line) for line in log.read_text().splitlines()]


def losses(result: dict[str, Any]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in result["loss"]}


# Recordings.


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_event_is_what_a_plain_reader_reads(name: str, tmp_path: Path) -> None:
    data = recording(name)
    found = low_level(tmp_path, data)
    expected = list(ftrace.read(data.decode()))
    assert len(found) == len(expected) > 1000
    for row, event in zip(found, expected, strict=True):
        key = (row["ts_ns"], row["tid"], row.get("pid"), row["comm"], row["event"])
        assert key == (event.ts, event.tid, event.pid, event.comm, event.name)
        for field, value in (event.fields or {}).items():
            if field == "bio":
                value = f"0x{value:x}"
            # The sector -1 of a flush is a string, because JSON readers do not read so large a number exactly.
            assert str(row[field]) == str(value), (field, row, event)


@pytest.mark.parametrize("name", RECORDINGS)
def test_requests_are_those_of_the_reference(name: str, tmp_path: Path) -> None:
    data = recording(name)
    expected = thesis.read(ftrace.as_thesis(list(ftrace.read(data.decode()))))
    result = tables(convert(tmp_path, data))
    assert losses(result).keys() <= {"duplicate", "unmatched_call"}
    assert not {row["reason"] for row in expected.loss} - {"unmatched_call"}
    requests = {row["id"]: row for row in expected.sync}
    assert {row["id"] for row in result["sync"]} == requests.keys()
    assert len(result["sync"]) == len(expected.sync)
    for row in result["sync"]:
        other = requests[row["id"]]
        for column in thesis.COLUMNS["sync"]:
            if column != "sync_id":
                assert row[column] == other[column], (column, row, other)
    calls = {(row["ts_ns"], row["tid"]): row for row in expected.call}
    for row in result["call"]:
        other = calls.pop((row["ts_ns"], row["tid"]))
        for column in ("dur_ns", "comm", "op", "ret", "stack", "unmatched"):
            assert row[column] == other[column]
    assert not calls


def test_event_counts_are_those_of_grep(tmp_path: Path) -> None:
    kinds = {
        "call_enter": r": sys_(fsync|fdatasync)\(",
        "call_exit": r": sys_(fsync|fdatasync) -> ",
        "sync_start": r": (sync_start|ext4_sync_file_enter): ",
        "sync_end": r": (sync_end|ext4_sync_file_exit): ",
        "bio_add_folio": r": bio_add_folio: ",
        "bio_submit": r": bio_submit: ",
        "bio_complete": r": bio_complete: ",
        # Writes, reads, and flushes without data.
        "block_submit": r": block_bio_queue: [0-9]+,[0-9]+ (F?W|R|FF)[A-Z]* [0-9]+ \+ [0-9]",
        "block_insert": r": block_rq_insert: [0-9]+,[0-9]+ (F?W|R|FF)[A-Z]* [0-9]+ \(\) [0-9]+ \+ [0-9]",
        "block_issue": r": block_rq_issue: [0-9]+,[0-9]+ ((F?W|R)[A-Z]* [0-9]+ \(\) [0-9]+ \+ [1-9]|FF)",
        "block_complete": r": block_rq_complete: [0-9]+,[0-9]+ (F?W|R|FF)[A-Z]* \(\) [0-9]+ \+ [0-9]",
        "block_remap": r": block_bio_remap: ",
        "journal_commit_start": r": jbd2_start_commit: ",
        "journal_commit_end": r": jbd2_end_commit: ",
    }
    for name in ("small1.trace.txt.gz", "small1.trace_pipe.txt.gz", "sqlite_wal_full.trace.txt.gz"):
        text = tmp_path / "in.txt"
        text.write_bytes(recording(name))
        summary = _core.convert([str(text)], f"{tmp_path}/out.csv")

        def grep(*what: str) -> int:
            done = subprocess.run(["grep", "-cE", *what, text], capture_output=True, text=True)  # noqa: B023
            return int(done.stdout)

        counted = {kind: grep(pattern) for kind, pattern in kinds.items()}
        counted["other"] = grep("-v", "^#") - sum(counted.values())
        found = {kind: count for kind, count in summary["events_by_kind"].items() if count}
        assert found == {kind: count for kind, count in counted.items() if count}
        assert sum(found.values()) > 2000


def assert_same_requests(
    rows: list[dict[str, Any]], expected_rows: list[dict[str, Any]], within_ns: int
) -> None:
    by_id = {row["id"]: row for row in expected_rows}
    assert len(by_id) == len(expected_rows) == len(rows)
    for row in rows:
        other = by_id[row["id"]]
        for column in row.keys() - {"sync_id", "comm"}:
            if column in TIMES and row[column] is not None:
                assert abs(row[column] - other[column]) <= within_ns, (column, row, other)
            else:
                assert row[column] == other[column], (column, row, other)


def test_a_report_gives_the_requests_of_its_trace_dat(tmp_path: Path) -> None:
    report, dat = gzip.decompress(REPORT.read_bytes()), SMALL4.read_bytes()
    text = tables(convert(tmp_path, report, "text/", name="in.txt"))
    binary = tables(convert(tmp_path, dat, "binary/", name="in.dat"))
    assert losses(text) == losses(binary)
    for table in ("sync", "bio", "call"):
        assert len(text[table]) == len(binary[table])
    assert_same_requests(text["sync"], binary["sync"], 1000)
    assert {row["comm"] for row in text["sync"]} == {"wl"}
    meta = {row["key"]: row["value"] for row in text["meta"]}
    assert (meta["source"], meta["clock"], meta["pid_is"]) == ("ftrace", "unknown", "thread")


def test_a_report_gives_the_low_level_log_of_its_trace_dat(tmp_path: Path) -> None:
    text = low_level(tmp_path, gzip.decompress(REPORT.read_bytes()))
    binary = low_level(tmp_path, SMALL4.read_bytes(), name="in.dat")
    assert len(text) == len(binary) == 3377
    same = 0
    for a, b in zip(text, binary, strict=True):
        assert (a["tid"], a["comm"], a["event"]) == (
            b["tid"],
            b["comm"],
            b["event"],
        )
        assert abs(a["ts_ns"] - b["ts_ns"]) <= 500
        for key in a.keys() & b.keys() - {"ts_ns", "source"}:
            # Flags, addresses and octal modes are text in the report and numbers in trace.dat.
            if isinstance(a[key], int) == isinstance(b[key], int):
                assert a[key] == b[key], (key, a, b)
                same += 1
    assert same > 20_000


TRACE_CMD = shutil.which("trace-cmd")


@pytest.mark.skipif(TRACE_CMD is None, reason="trace-cmd is not installed")
@pytest.mark.parametrize("options", ["", "-t", "-l", "-R", "-t -l", "-t -R", "-l -R", "--ts-diff"])
def test_every_option_of_trace_cmd_report_gives_the_same_requests(
    options: str, tmp_path: Path
) -> None:
    text = subprocess.run(
        [str(TRACE_CMD), "report", *options.split(), "-i", SMALL4], capture_output=True, check=True
    ).stdout
    result = tables(convert(tmp_path, text, "text/", name="in.txt"))
    binary = tables(convert(tmp_path, SMALL4.read_bytes(), "binary/", name="in.dat"))
    assert losses(result) == losses(binary)
    assert_same_requests(result["sync"], binary["sync"], 0 if "-t" in options.split() else 1000)


@pytest.mark.parametrize("name", ["small1.trace.txt.gz", "uring.report.txt.gz"])
def test_the_low_level_log_gives_the_same_requests(name: str, tmp_path: Path) -> None:
    direct = convert(tmp_path, recording(name), "direct.csv", name="in.txt")
    log = convert(tmp_path, recording(name), "log.events.jsonl", name="in.txt")
    again = convert(tmp_path, log.read_bytes(), "again.csv", name="in.events.jsonl")
    assert again.read_bytes() == direct.read_bytes()
    second = convert(tmp_path, log.read_bytes(), "second.events.jsonl", name="in.events.jsonl")
    source = b'"source":"%s"'
    assert second.read_bytes() == log.read_bytes().replace(
        source % b"ftrace", source % b"events-jsonl"
    )


# Every layout.


layouts = st.builds(
    Layout,
    trace_cmd=st.booleans(),
    latency=st.booleans(),
    tgid=st.booleans(),
    flags=st.sampled_from((".....", "dNh2.", "d..1", "dNL.h2..", "")),
    diff=st.booleans(),
    prefix=st.sampled_from(("", "a.dat: ", "       ")),
    raw=st.booleans(),
    stripped=st.booleans(),
    crlf=st.booleans(),
)


def possible(layout: Layout) -> Layout:
    """The nearest layout that the kernel or trace-cmd can print."""
    if not layout.trace_cmd:
        layout = replace(layout, diff=False, prefix="", raw=False)
    if layout.latency:
        layout = replace(layout, tgid=False, stripped=False, prefix="")
    if layout.latency and not layout.flags:
        layout = replace(layout, flags=".....")
    if layout.trace_cmd:
        layout = replace(layout, tgid=False)
    return layout


@settings(max_examples=200, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), layout=layouts, gaps=st.booleans())
def test_every_layout_gives_the_same_tables(
    seed: int, layout: Layout, gaps: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    layout = possible(layout)
    world = tracedat.world(random.Random(seed), requests=10)
    if gaps:
        counts = {3: 7, 9: None, 20: 4711}
        world = replace(
            world, gaps=[tracedat.Gap(world.events[n].cpu, n, c) for n, c in counts.items()]
        )
    folder = tmp_path_factory.mktemp("text")
    result = tables(convert(folder, ftrace.write(world, layout).encode(), name="in.txt"))
    expected = thesis.read(as_text(world))
    if gaps:
        assert losses(result).pop("lost_by_tracer") == 7 + 1 + 4711
    assert {k: n for k, n in losses(result).items() if k != "lost_by_tracer"} == {
        row["reason"]: row["count"] for row in expected.loss
    }
    for table in ("sync", "bio", "call"):
        rows = getattr(expected, table)
        assert len(result[table]) == len(rows)
        key = "bio_id" if table == "bio" else f"{table}_id"
        by_key = {row[key]: row for row in result[table]}
        for row in rows:
            found = by_key[row[key]]
            for column, value in row.items():
                if column == "comm" and value is not None:
                    # The latency format of trace-cmd and of the kernel cuts the comm to 8 characters.
                    value = value[:8] if layout.latency else value
                    assert found[column].strip() == value.strip()
                elif column == "pid":
                    tgid = layout.tgid and found["tid"] not in (None, 0)
                    assert found[column] == (found["tid"] // 2 if tgid else None)
                else:
                    assert found[column] == value, (table, column, layout)


def test_files_of_single_cpus_are_one_recording(tmp_path: Path) -> None:
    text = recording("small4.trace.txt.gz").decode()
    whole = convert(tmp_path, text.encode(), "whole.csv", name="in.txt")
    files = []
    for cpu in ("[000]", "[001]"):
        path = tmp_path / f"cpu{cpu[1:4]}.txt"
        lines = (line for line in text.splitlines() if cpu in line)
        path.write_text("".join(line + "\n" for line in lines))
        files.append(str(path))
    # A reorder window shorter than the distance from the end of one file to the beginning of the next.
    _core.convert(files, f"{tmp_path}/parts.csv", window_ns=1)
    assert (tmp_path / "parts.csv").read_bytes() == whole.read_bytes()


# Bad input.

LINE = "              wl-262     [000] .....    20.527240: "


def test_overwritten_events_are_lost(tmp_path: Path) -> None:
    text = recording("small1.trace.txt.gz").replace(b": 2321/2321", b": 2321/4000")
    assert b": 2321/4000" in text
    result = tables(convert(tmp_path, text))
    assert losses(result)["lost_by_tracer"] == 4000 - 2321


def test_a_clock_that_counts_no_time_is_refused(tmp_path: Path) -> None:
    text = LINE.replace("20.527240", "    20527").encode() + b"sys_fsync(fd: 3)\n"
    with pytest.raises(_core.CoreError, match="does not count ns") as caught:
        convert(tmp_path, b"# tracer: nop\n#\n" + text)
    assert "trace_clock" in caught.value.args[1]


def test_a_report_of_the_boot_clock_is_in_ns(tmp_path: Path) -> None:
    """trace-cmd does not know that the boot clock counts ns, and prints its times without a decimal point."""
    line = "              wl-262   [000]{}366798777064: sys_enter_fsync:      fd: 0x00000003\n"
    for flags in ("", " ....."):
        text = f"cpus=2\n{line.format(flags)}".encode()
        result = tables(convert(tmp_path, text))
        assert [row["ts_ns"] for row in result["call"]] == [366798777064]
        meta = {row["key"]: row["value"] for row in result["meta"]}
        assert meta["clock"] == "unknown; its times are taken for ns"
    with pytest.raises(_core.CoreError, match="does not count ns"):
        convert(tmp_path, text.replace(b"366798777064", b"        7064"))


def test_unparsed_lines_are_shown_with_their_numbers(tmp_path: Path) -> None:
    good = f"{LINE}sys_fsync(fd: 3)\n"
    bad = ["hello", f"{LINE}sync_end: id=1", f"{LINE}bio_submit: id=1 bio=zz dev=1,2 sector=3"]
    text = "".join(f"{good}{line}\n" for line in bad)
    (tmp_path / "in.txt").write_text(text)
    summary = _core.convert([str(tmp_path / "in.txt")], f"{tmp_path}/out/")
    assert {row["reason"]: row["count"] for row in summary["losses"]}["unparsed_line"] == 3
    for number, (line, shown) in enumerate(zip(bad, summary["unparsed"], strict=True)):
        assert f"in.txt:{2 * number + 2}: {line}" in shown


def test_the_format_is_detected_or_given_by_name(tmp_path: Path) -> None:
    text = f"{LINE}sys_fsync(fd: 3)\n".encode()
    for options in ({}, {"source": "ftrace"}):
        (tmp_path / "in.txt").write_bytes(text)
        summary = _core.convert([str(tmp_path / "in.txt")], f"{tmp_path}/out.csv", **options)
        assert (summary["source"], summary["events_by_kind"]["call_enter"]) == ("ftrace", 1)
    with pytest.raises(_core.CoreError, match="no event in 3 lines"):
        convert(tmp_path, b"# tracer: nop\n#\n#\n")


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(RECORDINGS),
    at=st.integers(0, 200_000),
    size=st.integers(0, 4000),
    changes=st.lists(st.tuples(st.integers(0, 3999), st.binary(max_size=9)), max_size=5),
)
def test_a_text_with_wrong_bytes_is_read_or_refused(
    name: str,
    at: int,
    size: int,
    changes: list[tuple[int, bytes]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    data = bytearray(recording(name)[at : at + size])
    for place, new in changes:
        data[place : place + len(new)] = new
    try:
        convert(tmp_path_factory.mktemp("wrong"), bytes(data), source="ftrace")
    except _core.CoreError as error:
        message, _, kind = error.args
        assert kind == "input"
        assert "in.log" in message


# Older kernels.

# The print formats of include/trace/events/{f2fs,btrfs}.h and fs/xfs/xfs_trace.h before they changed.
OLD_EVENTS = {
    "f2fs": (
        "f2fs_sync_file_enter: dev = (254,16), ino = 4, pino = 3, i_mode = 0x81a4, i_size = 12288, i_nlink = 1,"
        " i_blocks = 32, i_advise = 0x0",
        "f2fs_sync_file_exit: dev = (254,16), ino = 4, checkpoint is {}needed, datasync = 1, ret = 0",
    ),
    "btrfs": (
        "btrfs_sync_file: 6c7b62a1-0000-4e2f-8f10-3d6b3e1a2b3c: root = 5(FS_TREE), ino = 4, parent = 256, datasync = 1",
        None,
    ),
    "btrfs without its id": (
        "btrfs_sync_file: root = 5(FS_TREE), ino = 4, parent = 256, datasync = 1",
        None,
    ),
    "xfs": ("xfs_file_fsync: dev 254:16 ino 0x4", None),
    "ext4": (
        "ext4_sync_file_enter: dev 254,16 ino 4 parent 2 datasync 1 ",
        "ext4_sync_file_exit: dev 254,16 ino 4 ret 0",
    ),
}


@pytest.mark.parametrize("fs", OLD_EVENTS)
@pytest.mark.parametrize("need", ["", "not "])
def test_events_of_older_kernels(fs: str, need: str, tmp_path: Path) -> None:
    enter, leave = OLD_EVENTS[fs]
    events = ["sys_fdatasync(fd: 3)", enter, *([leave.format(need)] if leave else [])]
    lines = [*events, "sys_fdatasync -> 0x0"]
    data = "".join(
        f"              wl-7     [000] ....   20.{number:06}: {event}\n"
        for number, event in enumerate(lines)
    )
    result = tables(convert(tmp_path, data.encode()))
    (row,) = result["sync"]
    assert (row["fs"], row["ino"], row["op"], row["ret"]) == (fs.split()[0], 4, "fdatasync", 0)
    assert "unparsed_line" not in losses(result)
    if leave:
        assert row["incomplete"] is None
        assert row["dur_ns"] == 2000


def test_a_log_without_syncs_says_how_many_events_it_has(tmp_path: Path) -> None:
    line = "              wl-7     [000] ....   20.00000{}: x: a=1\n"
    head = "# tracer: nop\n#\n"
    for count, message in (
        (3, "none of its 3 events has to do"),
        (1, "its only event has nothing"),
    ):
        data = head + "".join(line.format(number) for number in range(count))
        with pytest.raises(_core.CoreError, match=message):
            convert(tmp_path, data.encode())
    with pytest.raises(_core.CoreError, match="no event in 2 lines"):
        convert(tmp_path, head.encode())


def test_examples_of_losses_name_no_id_where_there_is_none(tmp_path: Path) -> None:
    start = "ext4_sync_file_enter: dev 254,16 ino 4 parent 2 datasync 1 "
    events = (start, start, "ext4_sync_file_exit: dev 254,16 ino 4 ret 0", start)
    data = "".join(
        f"              wl-7     [000] ....   20.{number:06}: {event}\n"
        for number, event in enumerate(events)
    )
    result = tables(convert(tmp_path, data.encode()))
    examples = [row["example"] for row in result["loss"] if row["example"]]
    assert examples
    assert not any("18446744073709551615" in example for example in examples)
