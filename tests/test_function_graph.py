"""The text of the tracer function_graph: recordings against the truth of their program and a second reader, and damaged texts."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from syncline import _core

from tests.coretools import Rows, core
from tests.reference import function_graph
from tests.test_commands import ok

DATA = Path(__file__).parent / "data/function-graph"
RECORDINGS = sorted(path.stem for path in DATA.glob("*.truth"))
EXACT = ("ts_ns", "dur_ns", "journal_ns", "flush_ns", "other_ns", "syscall_ns")


def text(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


def tables(folder: Path, log: str) -> dict[str, Rows]:
    return core(folder, log.encode())


def losses(found: dict[str, Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in found["loss"] if row["severity"] == "loss"}


@pytest.mark.parametrize("name", RECORDINGS)
def test_each_sync_is_inside_the_call_that_the_program_timed(name: str, tmp_path: Path) -> None:
    found = tables(tmp_path, text(name))
    truth = [line.split() for line in (DATA / f"{name}.truth").read_text().splitlines() if line]
    assert len(truth) == len(found["sync"]) == 9
    for tid, op, begin, end in truth:
        # The clock of the trace has µs.
        [row] = [
            row
            for row in found["sync"]
            if row["tid"] == int(tid)
            and int(begin) - 1000 <= row["ts_ns"]
            and row["ts_ns"] + row["dur_ns"] <= int(end)
        ]
        assert row["op"] == (op if name == "calls" else None)
        assert row["fs"] == (name if name in ("xfs", "btrfs", "f2fs") else "ext4")
    assert losses(found) == {}


def outside(data: list[tuple[int, int]], waits: list[tuple[str, int, int]]) -> int:
    """The µs in functions that write page cache, without those in which the thread waits for a commit or a flush."""
    covered = {at for _, start, dur in waits for at in range(start, start + dur)}
    return len({at for since, end in data for at in range(since, end)} - covered)


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_gives_the_syncs_and_waits_of_the_second_reader(
    name: str, tmp_path: Path
) -> None:
    found = tables(tmp_path, text(name))
    expected = function_graph.read(text(name))
    waits: dict[int, list[tuple[str, int, int]]] = {}
    for row in found["wait"]:
        start = row["ts_ns"] // 1000
        waits.setdefault(row["sync_id"], []).append((row["wait"], start, row["dur_ns"] // 1000))
    data: dict[int, int] = {}
    for row in found["phase"]:
        if row["phase"] == "writeback":
            data[row["sync_id"]] = data.get(row["sync_id"], 0) + row["dur_ns"] // 1000
    rows = sorted(found["sync"], key=lambda row: row["sync_id"])
    assert len(rows) == len(expected)
    for row, sync in zip(rows, expected, strict=True):
        start = row["ts_ns"] // 1000 if sync.call is None else sync.start
        assert (row["tid"], start, row["op"]) == (sync.tid, sync.start, sync.op)
        if sync.call:
            assert row["syscall_ns"] == 1000 * (sync.call[1] - sync.call[0])  # type: ignore[operator]
        else:
            assert row["dur_ns"] == 1000 * (sync.end - sync.start)  # type: ignore[operator]
        assert sorted(waits.get(row["sync_id"], [])) == sorted(sync.waits)
        if name not in ("events", "trace-cmd"):
            # Without bios, the time in the functions that write page cache is all that is known of the data.
            assert data.get(row["sync_id"], 0) == outside(sync.data, sync.waits)
            assert row["bytes"] is None
            assert row["bios"] is None


def test_a_wait_is_known_only_if_its_function_was_traced(tmp_path: Path) -> None:
    found = tables(tmp_path, text("ext4"))
    # No call of `blkdev_issue_flush` is in it. Whether the function was traced, nothing says.
    assert {row["flush_ns"] for row in found["sync"]} == {None}
    assert {row["other_ns"] for row in found["sync"]} == {None}
    assert all(row["journal_ns"] for row in found["sync"])
    events = tables(tmp_path, text("events"))
    flushes = [
        any(wait[0] == "flush" for wait in sync.waits)
        for sync in function_graph.read(text("events"))
    ]
    rows = sorted(events["sync"], key=lambda row: row["sync_id"])
    assert [row["flush_ns"] is not None for row in rows] == flushes
    assert 0 < sum(flushes) < 9
    assert {row["bytes"] for row in events["sync"]} == {65536}


def test_the_pasted_sync_went_to_the_data_and_the_commit(tmp_path: Path) -> None:
    log = (DATA.parent / "pasted/function_graph.ftrace.txt").read_text()
    found = tables(tmp_path, log)
    [sync] = found["sync"]
    assert (sync["tid"], sync["comm"], sync["dur_ns"]) == (2211, "wal", 15_239_000)
    phases = {row["phase"]: row["dur_ns"] for row in found["phase"]}
    assert phases == {"writeback": 1_200_000, "commit wait": 14_023_000, "residue": 16_000}


def test_a_text_without_times_or_threads_is_refused_with_the_options(tmp_path: Path) -> None:
    def refusal(log: str) -> str:
        with pytest.raises(_core.CoreError) as caught:
            tables(tmp_path, log)
        return str(caught.value)

    assert "its lines have no time" in refusal(text("no-time"))
    lines = [line for line in text("no-task").splitlines() if "=>" not in line]
    assert "its lines name no thread" in refusal("\n".join(lines))


def test_functions_that_are_not_one_inside_another_are_counted(tmp_path: Path) -> None:
    lines = text("ext4").splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if "jbd2_complete_transaction" in line)
    found = tables(tmp_path, "".join(lines[:at] + lines[at + 1 :]))
    assert losses(found)["unparsed_line"] == 1
    [example] = [row["example"] for row in found["loss"] if row["reason"] == "unparsed_line"]
    assert "not one inside another" in example


def test_text_around_the_functions_leaves_them_exact(tmp_path: Path) -> None:
    whole = tables(tmp_path, text("ext4"))
    for log in (
        f"```\n{text('ext4')}```\n",
        f"root@db:~# cat /sys/kernel/tracing/trace\n{text('ext4')}",
        text("ext4").partition("FUNCTION CALLS\n")[2].partition("\n")[2],
        "".join(line.lstrip() for line in text("ext4").splitlines(keepends=True)),
        "".join(f"> {line}" for line in text("ext4").splitlines(keepends=True)),
    ):
        found = tables(tmp_path, log)
        assert [{**row, "ts_ns": 0} for row in found["sync"]] == [
            {**row, "ts_ns": 0} for row in whole["sync"]
        ]


def test_a_return_whose_function_began_before_the_log_is_counted(tmp_path: Path) -> None:
    log = text("ext4").splitlines(keepends=True)
    at = next(n for n, line in enumerate(log) if "ext4_sync_file" in line)
    found = tables(tmp_path, "".join(log[:at] + log[at + 3 :]))
    # The thread of the three lines is in functions whose entries are not in the log. It makes two syncs more.
    assert len(found["sync"]) == 8
    assert losses(found) == {}
    info = json.loads(ok("inspect", tmp_path / "in.log", "--format", "json"))["inputs"][0]
    counts = {row["event"]: row["count"] for row in info["other_events"]}
    assert counts["the return of a function that began before the log"] >= 1


def differences(whole: Rows, found: Rows) -> list[tuple[Any, ...]]:
    """What a sync that is marked exact and complete says differently."""
    known = {(row["tid"], row["ts_ns"]): row for row in whole}
    wrong = []
    for row in found:
        if row["confidence"] != "exact" or row["incomplete"]:
            continue
        right = known.get((row["tid"], row["ts_ns"]))
        if right is None:
            wrong.append(("new", row["tid"], row["ts_ns"]))
            continue
        for column in EXACT:
            if row[column] not in (None, right[column]):
                wrong.append((column, row["tid"], row["ts_ns"], row[column], right[column]))
    return wrong


def is_whole_wait(line: str) -> bool:
    """Nothing shows that the only line of a function is missing, nor that a thread has run on another CPU."""
    return line.rstrip().endswith(";")


@pytest.mark.parametrize("name", ["ext4", "calls", "xfs", "btrfs", "f2fs", "trace-cmd"])
def test_without_a_line_nothing_exact_is_wrong(name: str, tmp_path: Path) -> None:
    lines = text(name).splitlines(keepends=True)
    whole = tables(tmp_path, "".join(lines))["sync"]
    rng = random.Random(name)
    functions = [n for n, line in enumerate(lines) if "|" in line and not is_whole_wait(line)]
    for at in rng.sample(functions, min(60, len(functions))):
        found = tables(tmp_path, "".join(lines[:at] + lines[at + 1 :]))
        assert differences(whole, found["sync"]) == [], lines[at]


@pytest.mark.parametrize("name", ["ext4", "no-task", "trace-cmd"])
def test_a_text_that_is_cut_off_gives_nothing_exact_that_is_wrong(
    name: str, tmp_path: Path
) -> None:
    log = text(name)
    whole = tables(tmp_path, log)["sync"]
    rng = random.Random(name)
    head = "cpus=2\n" if name == "trace-cmd" else "# tracer: function_graph\n"
    read = 0
    for _ in range(40):
        begin, end = rng.randrange(log.index("\n") + 1, len(log) // 2), rng.randrange(400, len(log))
        for cut in (log[:end], head + log[begin:]):
            try:
                found = tables(tmp_path, cut)["sync"]
            except _core.CoreError as error:
                # Before the first switch of a CPU, nothing says which thread runs there.
                assert "no thread" in str(error) or "no function that syncs" in str(error)
                continue
            read += 1
            assert differences(whole, found) == [], (begin, end)
    assert read > 40


def test_a_trace_dat_gives_the_rows_of_its_report(tmp_path: Path) -> None:
    """Its functions are addresses, and its times have ns, where trace-cmd prints µs."""
    from_text = tables(tmp_path, text("trace-cmd"))
    found = core(tmp_path, gzip.decompress((DATA / "trace-cmd.dat.gz").read_bytes()), name="in.dat")
    assert len(found["sync"]) == len(from_text["sync"]) == 9
    assert losses(found) == {}
    for table in ("sync", "wait", "phase", "bio"):
        for one, other in zip(found[table], from_text[table], strict=True):
            assert one.keys() == other.keys()
            for column, value in one.items():
                if value is None or not (column.endswith("_ns") or column == "dur_ns"):
                    assert value == other[column], (table, column)
                else:
                    # Two times that are rounded.
                    assert abs(value - other[column]) <= 2000, (table, column)


@pytest.mark.parametrize("name", ["calls.txt", "events.txt", "trace-cmd.txt", "trace-cmd.dat.gz"])
def test_the_low_level_log_gives_the_same_rows(name: str, tmp_path: Path) -> None:
    data = (DATA / name).read_bytes()
    direct = core(tmp_path, gzip.decompress(data) if name.endswith(".gz") else data)
    _core.convert([str(tmp_path / "in.log")], f"{tmp_path}/log.events.jsonl")
    again = core(tmp_path, (tmp_path / "log.events.jsonl").read_bytes(), name="in.events.jsonl")
    for table in ("sync", "wait", "phase", "bio", "call"):
        assert again[table] == direct[table], table


T = "|   0)  db-100  |"
HEAD = "# tracer: function_graph\n"


def graph(*lines: tuple[str, str, str]) -> str:
    """A text of one thread: (time, duration, function) of each line."""
    return HEAD + "".join(f"   {ts} {T} {dur:>14} |  {code}\n" for ts, dur, code in lines)


def test_a_duration_of_a_second_has_no_fraction(tmp_path: Path) -> None:
    log = graph(("10.000000", "", "ext4_sync_file() {"), ("11.200000", "$ 1200000 us", "}"))
    [sync] = tables(tmp_path, log + f"   20.000000 {T} $ 9999999 us   |  ext4_sync_file();\n")[
        "sync"
    ][:1]
    assert (sync["dur_ns"], sync["confidence"], sync["incomplete"]) == (
        1_200_000_000,
        "exact",
        None,
    )
    rows = tables(tmp_path, graph(("20.000000", "$ 9999999 us", "ext4_sync_file();")))["sync"]
    assert [row["dur_ns"] for row in rows] == [9_999_999_000]


@pytest.mark.parametrize(
    "lines",
    [
        # The exit of one sync and the entry of the next one are missing.
        [("10.000000", "", "ext4_sync_file() {"), ("10.052000", "# 2000.000 us", "}")],
        # Another function is at its end.
        [("10.000000", "", "ext4_sync_file() {"), ("10.006000", "# 6000.000 us", "} /* xfs_file_fsync */")],
        # options/sleep-time is 0.
        [("10.000000", "", "ext4_sync_file() {"), ("10.060000", "+ 40.000 us", "}")],
    ],
)  # fmt: skip
def test_an_end_that_contradicts_its_begin_is_not_used(
    lines: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    found = tables(tmp_path, graph(*lines))
    [sync] = found["sync"]
    assert (sync["dur_ns"], sync["incomplete"]) == (None, "end")
    assert {"end_missing", "unparsed_line"} <= losses(found).keys()


def test_a_recording_does_not_end_what_began_in_the_one_before(tmp_path: Path) -> None:
    begin = graph(
        ("10.000000", "", "ext4_sync_file() {"), ("10.000100", "", "  jbd2_log_wait_commit() {")
    )
    end = graph(("70.000100", "# 1000.000 us", "  }"), ("70.000200", "# 1200.000 us", "}"))
    [sync] = tables(tmp_path, begin + end)["sync"]
    assert (sync["dur_ns"], sync["journal_ns"], sync["incomplete"]) == (None, None, "end")


def test_the_threads_of_one_recording_are_not_those_of_the_next(tmp_path: Path) -> None:
    def part(second: int, old: str, new: str) -> str:
        return HEAD + (
            f"   {second}.000000 |   0)               |  ext4_sync_file() {{\n"
            f"   {second}.001000 |   0) # 1000.000 us |  }}\n"
            f" 0)  {old}   =>  {new}  \n"
        )

    found = tables(tmp_path, part(10, "db-100", "wal-101") + part(20, "mysqld-900", "etcd-901"))
    # Before the first switch of the second one, nothing says which thread it is.
    assert [(row["comm"], row["tid"]) for row in found["sync"]] == [("db", 100)]
    assert losses(found) == {"unparsed_line": 2}


def test_a_head_says_nothing_of_the_threads_before_the_next_recording(tmp_path: Path) -> None:
    """Only the second recording has a switch on CPU 1."""
    first = "   10.000000 |   1)               |  ext4_sync_file() {\n   10.001000 |   1) # 1000.000 us |  }\n"
    log = f"{HEAD} 0)  db-100   =>  wal-101  \n{first}{HEAD} 1)  mysqld-900   =>  etcd-901  \n"
    with pytest.raises(_core.CoreError, match="it has no function that syncs a file"):
        tables(tmp_path, log)


def test_an_end_that_is_a_little_late_is_not_exact(tmp_path: Path) -> None:
    """Between two short syncs, the end of one and the begin of the other may be missing."""
    for end, confidence in (("10.001000", "exact"), ("10.001600", "inferred")):
        [sync] = tables(
            tmp_path, graph(("10.000000", "", "ext4_sync_file() {"), (end, "# 1000.000 us", "}"))
        )["sync"]
        assert (sync["dur_ns"], sync["confidence"]) == (int(end[-6:]) * 1000, confidence)


def test_overlayfs_calls_the_function_for_any_file_system_twice(tmp_path: Path) -> None:
    log = graph(
        ("10.000000", "", "__x64_sys_fsync() {"),
        ("10.000010", "", "  vfs_fsync_range() {"),
        ("10.000020", "", "    ovl_fsync() {"),
        ("10.000030", "", "      vfs_fsync_range() {"),
        ("10.000040", "", "        ext4_sync_file() {"),
        ("10.000050", "# 4000.000 us", "          jbd2_log_wait_commit();"),
        ("10.005000", "# 4960.000 us", "        }"),
        ("10.005100", "# 5070.000 us", "      }"),
        ("10.005200", "# 5180.000 us", "    }"),
        ("10.005300", "# 5290.000 us", "  }"),
        ("10.005400", "# 5400.000 us", "}"),
    )
    found = tables(tmp_path, log)
    [sync] = found["sync"]
    assert (sync["op"], sync["fs"], sync["syscall_ns"], sync["journal_ns"]) == (
        "fsync",
        "ext4",
        5_400_000,
        4_000_000,
    )
    assert (sync["confidence"], sync["incomplete"], losses(found)) == ("exact", None, {})


def test_lines_between_functions_are_no_losses(tmp_path: Path) -> None:
    lines = text("ext4").splitlines(keepends=True)
    overruns = "".join(
        f"{line} (Overruns: 0)\n" if line.rstrip().endswith("}") else line for line in lines
    )
    whole = tables(tmp_path, text("ext4"))
    found = tables(tmp_path, overruns)
    assert (found["sync"], losses(found)) == (whole["sync"], {})
    assert (
        losses(tables(tmp_path, text("trace-cmd").replace("cpus=2\n", "CPU 1 is empty\ncpus=2\n")))
        == {}
    )


def test_an_event_of_another_disk_changes_nothing(tmp_path: Path) -> None:
    log = graph(
        ("10.000000", "", "ext4_sync_file() {"),
        ("10.000100", "# 5000.000 us", "  file_write_and_wait_range();"),
        ("10.006300", "# 6300.000 us", "}"),
    )
    other = f"   10.007000 {T}                |  /* block_rq_complete: 8,0 R () 270464 + 128 be,0,4 [0] */\n"
    for found in (tables(tmp_path, log), tables(tmp_path, log + other)):
        assert {row["phase"]: row["dur_ns"] for row in found["phase"]}["writeback"] == 5_000_000
