"""`bpftrace -f json`: against the same log as text; events for btetto against a second reader; bad input."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syncline import _core

from tests.coretools import RECORDINGS, ROOT, convert, core, recording
from tests.reference import bpftrace_json, loggen
from tests.test_commands import fails, ok, run

DATA = ROOT / "tests" / "data" / "bpftrace-json"
OWN = sorted((ROOT / "tests" / "data" / "bpf").glob("*.log*"))
VERSIONS = ("0.17", "0.23", "0.27")
SYNCS = [f"{name}-{version}" for name in ("stock", "btetto") for version in VERSIONS]

Row = dict[str, Any]


def log(name: str) -> bytes:
    return gzip.decompress((DATA / f"{name}.json.gz").read_bytes())


def low_level(folder: Path, data: bytes) -> list[Row]:
    out = convert(folder, data, "out.events.jsonl")
    return [json.loads(line) for line in out.read_text().splitlines()]


def losses(result: dict[str, Any]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in result["loss"]}


def plain(rows: list[Row]) -> list[Row]:
    """Removes the fields that differ between formats: the source and line numbers."""
    for row in rows:
        row.pop("source")
        row.pop("line", None)
    return rows


def assert_as_text(folder: Path, data: bytes, text: bytes) -> None:
    """Checks that a log as JSON gives the same as the log as text."""
    (folder / "json").mkdir(exist_ok=True)
    (folder / "text").mkdir(exist_ok=True)
    found, expected = core(folder / "json", data), core(folder / "text", text)
    for table in ("sync", "bio", "call", "wait", "mark"):
        assert found[table] == expected[table], table
    assert losses(found) == losses(expected)
    meta = [
        {
            row["key"]: row["value"]
            for row in result["meta"]
            if row["key"] not in ("source", "inputs")
        }
        for result in (found, expected)
    ]
    for key in ("clock", "kernel", "boot_id", "host", "recorder", "filter", "events"):
        assert meta[0].get(key) == meta[1].get(key), key
    assert plain(low_level(folder / "json", data)) == plain(low_level(folder / "text", text))


# Output of printf.


@pytest.mark.parametrize("version", VERSIONS)
def test_our_recorder_gives_the_same_as_text(version: str, tmp_path: Path) -> None:
    data = log(f"stock-{version}")
    text = bpftrace_json.text(data)
    result = core(tmp_path, data)
    # The workload: ten files of 200 bytes, each with an fsync, by two threads.
    assert [row["op"] for row in result["sync"]] == ["fsync"] * 10
    assert [row["bytes"] for row in result["sync"]] == [4096] * 10
    assert len({row["tid"] for row in result["sync"]}) == 2
    assert losses(result) == {}
    counted = dict(re.findall(rb"^@events\[(\w+)\]: (\d+)$", text, re.MULTILINE))
    assert counted[b"fsync"] == b"10"
    assert re.search(rb"^# end \d+$", text, re.MULTILINE)
    assert_as_text(tmp_path, data, text)


@pytest.mark.parametrize("version", VERSIONS)
def test_odd_output_is_what_the_same_bpftrace_printed_as_text(version: str, tmp_path: Path) -> None:
    """JSON and text come from two runs. Values as text are in no format that Syncline reads."""
    texts = {}
    for kind in ("json", "text"):
        data = gzip.decompress((DATA / f"odd-{version}.{kind}.gz").read_bytes())
        all_rows = plain(low_level(tmp_path, data))
        torn, rows = (
            [row for row in all_rows if (row["event"] == "torn_line") is is_torn]
            for is_torn in (True, False)
        )
        # A line of digits may be the begin of any event: the text `00`, and `5` if it is not an object of its own.
        assert [row["fact"] for row in torn] == ["any"] * {"json": 1, "text": 2}[kind]
        assert [row["event"] for row in rows] == ["fsync", "fsync_exit"] + ["unparsed_line"] * 5
        assert rows[0]["stack"] == ["main+1", 'f"\\+2']
        assert (rows[0]["comm"], rows[1]["ret"]) == ("a\tb", 0)
        texts[kind] = [row["text"] for row in rows[2:]]
    assert (texts["json"][0], texts["json"][4]) == (texts["text"][0], texts["text"][4])
    assert all('"value"' in text for text in texts["json"][1:4])


def test_a_line_in_two_objects_has_the_number_of_the_first(tmp_path: Path) -> None:
    data = bpftrace_json.write(b"", random.Random(1)) + (
        b'{"type": "printf", "data": "1 7 a fsync\\n2 7 a fs"}\n'
        b'{"type": "lost_events", "data": {"events": 3}}\n'
        b'{"type": "printf", "data": "ync_exit x\\n3 7 a fsync\\n"}\n'
    )
    rows = low_level(tmp_path, data)
    names = ["fsync", "lost_events", "unparsed_line", "torn_line", "fsync"]
    assert [row["event"] for row in rows] == names
    assert (rows[2]["line"], rows[2]["text"]) == (2, "2 7 a fsync_exit x")
    # The line is that of a call, although it does not say with which result the call returned.
    assert (rows[3]["ts_ns"], rows[3]["tid"], rows[3]["fact"]) == (2, 7, "call")
    assert rows[1]["count"] == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_lost_events_are_the_events_that_were_not_printed(version: str, tmp_path: Path) -> None:
    """dd wrote 3000 times, and three lines about it. After a \\u0001, bpftrace 0.27 prints the count in hex."""
    data = log(f"lost-{version}")
    printed = data.count(b'"2 7 aaaa')
    rows = low_level(tmp_path, data)
    lost = sum(row["count"] for row in rows if row["event"] == "lost_events")
    assert printed + lost == 3003
    if version == "0.27":
        assert b'"count": a4e,' in data
        assert lost == 0xA4E
        # The \u0001 may be in an earlier chunk. An escaped backslash before `u0001` does not count as one.
        hundreds = data.replace(b"a4e", b"100")
        later = hundreds.replace(
            b'{"type": "lost',
            b'{"type": "printf", "data": "3 7 a fsync\\n"}\n' * 60000 + b'{"type": "lost',
        )
        for text, expected in (
            (hundreds, 256),
            (later, 256),
            (later.replace(b"\\u0001", b"\\\\u0001"), 100),
        ):
            found = low_level(tmp_path, text)
            assert [row["count"] for row in found if row["event"] == "lost_events"] == [expected]


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
@pytest.mark.parametrize("version", [17, 27])
def test_every_recording_of_our_recorders_gives_the_same_as_json(
    path: Path, version: int, tmp_path: Path
) -> None:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    as_json = bpftrace_json.write(text, random.Random(version), version)
    assert bpftrace_json.text(as_json) == text
    assert_as_text(tmp_path, as_json, text)


@pytest.mark.parametrize(
    "name", [name for name in RECORDINGS if name not in ("bg.log.gz", "sync.log")]
)
def test_recordings_of_the_thesis_give_the_same_as_json(name: str, tmp_path: Path) -> None:
    text = recording(name)
    lines = text.splitlines(keepends=True)
    lines.insert(len(lines) // 2, b"Lost 255 events\n")
    # At a time near those of the other lines: a text with a damaged time is torn, and numbers of JSON are not.
    ts = next(line.split()[0] for line in lines if line[:1].isdigit())
    lines.insert(3, ts + " 7 caf\u00e9\x01 fsync\n".encode())
    text = b"".join(lines)
    for signed in (True, False):
        as_json = bpftrace_json.write(text, random.Random(name), 27, signed)
        assert_as_text(tmp_path, as_json, text)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), version=st.sampled_from([17, 23, 27]), signed=st.booleans())
def test_generated_logs_give_the_same_as_json(
    seed: int, version: int, signed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = random.Random(seed)
    params = loggen.random_params(rng)
    params.requests = 30
    text = loggen.generate(params, rng).log
    as_json = bpftrace_json.write(text, rng, version, signed)
    assert_as_text(tmp_path_factory.mktemp("log"), as_json, text)


def test_a_long_log_is_read_in_chunks(tmp_path: Path) -> None:
    """Chunks, which several threads read, end anywhere in lines and stacks."""
    text = b"".join(
        recording(name) for name in RECORDINGS if name.startswith("s") and name.endswith(".log")
    )
    text *= 8
    as_json = bpftrace_json.write(text, random.Random(5))
    assert len(as_json) > 4 << 20
    found, expected = low_level(tmp_path, as_json), low_level(tmp_path, text)
    numbers = [row["line"] for row in found if "line" in row]
    assert numbers == sorted(numbers)
    assert plain(found) == plain(expected)


# Events for btetto.


@pytest.mark.parametrize("version", VERSIONS)
def test_every_event_for_btetto_is_what_a_plain_reader_reads(version: str, tmp_path: Path) -> None:
    data = log(f"btetto-{version}")
    expected = bpftrace_json.rows(data)
    found = [row for row in plain(low_level(tmp_path, data)) if row["event"] != "unparsed_line"]
    assert found == expected
    assert len(expected) == data.count(b'["track_event"') + data.count(b'["call_stack"')


@pytest.mark.parametrize("version", VERSIONS)
def test_syncs_from_events_for_btetto_are_those_of_the_workload(
    version: str, tmp_path: Path
) -> None:
    result = core(tmp_path, log(f"btetto-{version}"))
    assert [row["op"] for row in result["sync"]] == ["fsync"] * 10
    assert [(row["bytes"], row["bios"], row["ret"]) for row in result["sync"]] == [
        (4096, 1, 0)
    ] * 10
    assert len({row["ino"] for row in result["sync"]}) == 10
    assert {(row["fs"], row["dev"], row["confidence"]) for row in result["sync"]} == {
        ("ext4", "254,16", "inferred")
    }
    # The workload printed this line between those of bpftrace.
    assert losses(result).get("unparsed_line", 0) == (version != "0.27")
    assert losses(result).keys() <= {"unparsed_line", "completed_after_end"}


def test_a_request_has_the_times_of_its_events(tmp_path: Path) -> None:
    """The first request of thread 254 in btetto-0.17 has the times of its seven lines."""
    (row, *_) = [row for row in core(tmp_path, log("btetto-0.17"))["sync"] if row["tid"] == 254]
    enter, start, queued = 161633807355, 161633943550, 161634462281
    done, end, leave = 161637109602, 161705995918, 161706164948
    assert (row["ts_ns"], row["start_ns"]) == (enter, start)
    assert (row["dur_ns"], row["syscall_ns"]) == (end - enter, leave - enter)
    assert row["writeback_ns"] == done - queued
    assert (row["before_submit_ns"], row["after_complete_ns"]) == (queued - start, end - done)
    assert (row["pid"], row["ino"], row["stack"]) == (253, 34, "0x7f8a42d1a72e")


def test_both_engines_report_the_same(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(log("btetto-0.23"))
    ok("convert", "-q", tmp_path / "log", "-o", tmp_path / "x.pftrace")
    for report in ("summary", "files", "latency", "losses"):
        a, b = (
            run("report", "--format", "csv", tmp_path / name, report)
            for name in ("log", "x.pftrace")
        )
        assert a.returncode == 0, a.stderr
        assert a.stdout == b.stdout


def value(*items: Any) -> bytes:
    return json.dumps({"type": "value", "data": ["track_event", *items]}).encode() + b"\n"


def event(name: str, phase: str, **more: Any) -> bytes:
    pairs = {"name": name, "type": phase, "ts": 5, "pid": 6, "tid": 7, "thread_name": "wl"} | more
    return value(*map(list, pairs.items()))


@pytest.mark.parametrize("pid_is", ["thread", "process"])
@pytest.mark.parametrize("left_out", ["pid", "tid", None])
def test_ids_of_events_decide(pid_is: str, left_out: str | None, tmp_path: Path) -> None:
    """`--pid-is` applies only to logs whose ids are ambiguous. A wrong value would break the pairing."""
    data = b""
    for ts, phase, task in ((1, "BEGIN", 20), (3, "BEGIN", 30), (7, "END", 20), (9, "END", 30)):
        pairs = {
            "name": "ext4_sync_file",
            "type": phase,
            "ts": ts,
            "tid": task,
            "pid": task - 1,
            "ret": 0,
        }
        pairs.pop(left_out, None)
        data += value(*map(list, pairs.items()))
    if pid_is == "process" and left_out != "tid":
        with pytest.raises(_core.CoreError, match="its events name their threads"):
            core(tmp_path, data, pid_is=pid_is)
        return
    rows = core(tmp_path, data, pid_is=pid_is)["sync"]
    if left_out == "tid":
        # Threads of a process cannot be distinguished, so a request without an id is not paired.
        assert sorted(row["incomplete"] for row in rows) == ["end", "end", "start", "start"]
    else:
        assert [(row["ts_ns"], row["dur_ns"]) for row in rows] == [(1, 6), (3, 6)]
    assert all(
        (row[key] is not None) == (key != left_out) for row in rows for key in ("tid", "pid")
    )


@pytest.mark.parametrize(
    ("name", "phase", "more", "expected", "kind"),
    [
        ("fsync", "BEGIN", {}, "fsync", "call_enter"),
        ("fsync", "END", {}, "fsync_exit", "call_exit"),
        ("fsync", "INSTANT", {}, "track_event fsync", "other"),
        ("sync_file_range", "END", {"ret": "-5"}, "sync_file_range_exit", "call_exit"),
        ("sys_enter_msync", "BEGIN", {}, "sys_enter_msync", "call_enter"),
        ("tracepoint:syscalls:sys_enter_msync", "END", {}, "sys_exit_msync", "call_exit"),
        ("tracepoint:syscalls:sys_exit_sync", "INSTANT", {"ret": 0}, "sys_exit_sync", "call_exit"),
        ("sys_exit_sync", "BEGIN", {}, "track_event sys_exit_sync", "other"),
        ("ext4_sync_file", "BEGIN", {}, "ext4_sync_file_enter", "sync_start"),
        ("f2fs_sync_file", "END", {"ret": -5}, "f2fs_sync_file_exit", "sync_end"),
        ("xfs_file_fsync", "BEGIN", {"ino": 3, "dev": "8,16"}, "xfs_file_fsync", "sync_start"),
        ("xfs_file_fsync", "END", {"ret": 0}, "track_event xfs_file_fsync", "other"),
        ("start", "BEGIN", {"id": 1}, "track_event start", "other"),
        ("Q", "INSTANT", {"op": "write"}, "track_event Q", "other"),
        ("flush", "BEGIN", {}, "flush", "other"),
        ("commit", "COUNTER", {"counter_value": 3}, "commit", "other"),
        ("lost_events", "INSTANT", {"count": 3}, "track_event lost_events", "other"),
        (
            "block_rq_complete",
            "INSTANT",
            {"dev": 8 << 20 | 16, "sector": 8, "nr_sector": 8, "rwbs": "WFS"},
            "block_rq_complete",
            "block_complete",
        ),
        (
            "tracepoint:block:block_bio_remap",
            "INSTANT",
            {"dev": 9, "sector": 8, "nr_sector": 1, "rwbs": "W", "old_dev": 8, "old_sector": 1},
            "block_bio_remap",
            "block_remap",
        ),
        (
            "block_rq_complete",
            "INSTANT",
            {"dev": 9, "sector": 8, "nr_sector": 8, "rwbs": "RA"},
            "block_rq_complete",
            "block_complete",
        ),
        (
            "block_rq_complete",
            "INSTANT",
            {"dev": 9, "sector": 8, "nr_sector": 8, "rwbs": "DS"},
            "block_rq_complete",
            "block_complete",
        ),
        (
            "block_rq_complete",
            "INSTANT",
            {"dev": 9, "sector": 8, "nr_sector": 8, "rwbs": "ZR"},
            "block_rq_complete",
            "other",
        ),
        (
            "bio_submit",
            "INSTANT",
            {"id": 3, "bio": "18446744072361114048", "dev": 9, "sector": 8},
            "bio_submit",
            "bio_submit",
        ),
    ],
)
def test_names_of_events_have_their_kind(
    name: str, phase: str, more: Row, expected: str, kind: str, tmp_path: Path
) -> None:
    data = event(name, phase, **more) + event("end", "INSTANT")
    (tmp_path / "x").write_bytes(data)
    summary = _core.convert([str(tmp_path / "x")], str(tmp_path / "x.events.jsonl"))
    counted = {name: count for name, count in summary["events_by_kind"].items() if count}
    assert counted == ({"other": 2} if kind == "other" else {kind: 1, "other": 1})
    rows = [json.loads(line) for line in (tmp_path / "x.events.jsonl").read_text().splitlines()]
    assert rows[0]["event"] == expected
    assert (rows[0]["tid"], rows[0]["pid"], rows[0]["comm"]) == (7, 6, "wl")
    # The low-level log gives the same, whatever the names of the fields.
    again = _core.convert([str(tmp_path / "x.events.jsonl")], str(tmp_path / "y.events.jsonl"))
    assert again["events_by_kind"] == summary["events_by_kind"]


def test_pairs_with_another_meaning_are_renamed_fields(tmp_path: Path) -> None:
    """With a `ret`, the entry of a call would be an exit when the low-level log is read."""
    data = event("fsync", "BEGIN", ret=3, op="write", path="/a", ustack="\n  f+1\n  g+2\n", comm=1)
    data += event("fsync", "END", ret=-5, path="/b", ts=9)
    first = convert(tmp_path, data, "a.events.jsonl")
    second = convert(tmp_path, first.read_bytes(), "b.events.jsonl")
    assert first.read_text() == second.read_text().replace("events-jsonl", "bpftrace-json")
    enter, leave = (json.loads(line) for line in first.read_text().splitlines())
    assert (enter["data_ret"], enter["data_op"], enter["data_comm"]) == (3, "write", 1)
    assert (enter["path"], enter["stack"]) == ("/a", ["f+1", "g+2"])
    assert (leave["ret"], leave["data_path"]) == (-5, "/b")


def test_output_without_a_time_is_ignored(tmp_path: Path) -> None:
    values = (["stdout", "Tracing"], ["call_stack", ["kstack", "\n  f+1\n"], ["ustack", ""]])
    lines = [json.dumps({"type": "value", "data": data}) for data in values]
    data = "\n".join(lines).encode() + b"\n" + event("fsync", "BEGIN")
    assert [row["event"] for row in low_level(tmp_path, data)] == ["fsync"]
    assert "unparsed_line" not in losses(core(tmp_path, data))


@pytest.mark.parametrize("name", SYNCS)
def test_the_low_level_log_gives_the_same_requests(name: str, tmp_path: Path) -> None:
    first = convert(tmp_path, log(name), "a.events.jsonl")
    second = convert(tmp_path, first.read_bytes(), "b.events.jsonl")
    assert second.read_text().replace("events-jsonl", "bpftrace-json") == first.read_text()
    found, expected = core(tmp_path, first.read_bytes()), core(tmp_path, log(name))
    for table in ("sync", "call", "bio"):
        assert found[table] == expected[table], table


# Detection of the format, and bad input.


@pytest.mark.parametrize("name", [*SYNCS, "utf-0.27", "odd-0.17"])
def test_the_format_is_detected_by_its_content(name: str, tmp_path: Path) -> None:
    for data in (
        log(name),
        b'ntf", "data": "5 7 wl fsync\\n"}\n' + log(name),
        b"x.bt:8:28-36: WARNING: Unnecessary cast\n    print(1)\n" + log(name),
        # As `jq -c` writes it.
        re.sub(
            rb'^\{"type": ("\w+"), "data": (.*)\}$',
            rb'{"type":\1,"data":\2}',
            log(name),
            flags=re.M,
        ),
    ):
        (tmp_path / "x").write_bytes(data)
        summary = _core.convert([str(tmp_path / "x")], str(tmp_path / "x.events.jsonl"))
        assert summary["source"] == "bpftrace-json"
    assert len(
        ok("convert", "-q", "-", "-o", "-", "--to", "events.jsonl", stdin=gzip.compress(data))
    )


def test_a_text_log_with_one_json_line_is_a_text_log(tmp_path: Path) -> None:
    lines = recording("small1.log").splitlines(keepends=True)
    lines.insert(30, event("fsync", "BEGIN"))
    (tmp_path / "x").write_bytes(b"".join(lines))
    summary = _core.convert([str(tmp_path / "x")], str(tmp_path / "x.csv"))
    assert summary["source"] == "bpftrace"
    assert losses({"loss": summary["losses"]}) == {"unparsed_line": 1}


def test_bytes_that_are_not_utf_8_are_kept(tmp_path: Path) -> None:
    rows = low_level(tmp_path, log("utf-0.27"))
    paths = [row["path"] for row in rows if row["event"] == "openat"]
    assert "/mnt/data/caf\u00e9" in paths
    assert "/mnt/data/a\\xff\x01b" in paths


def test_a_truncated_log_is_a_loss(tmp_path: Path) -> None:
    data = log("stock-0.27")
    whole, cut = core(tmp_path, data), core(tmp_path, data[: data.rindex(b"# end ")])
    assert "cut_off" not in losses(whole)
    assert losses(cut)["cut_off"] == 1
    assert losses(whole) == {}
    assert losses(cut)["unparsed_line"] == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"type": "printf", "data": "5 7 wl fs', "not a complete object"),
        (b'{"type": "printf", "data": "5 7 \\x41"}', "not a complete object"),
        (b'{"type": "printf", "data": 5}', "its `data` is not a text"),
        (b'{"data": "x"}', "begins with its `type`"),
        (b'{"type": "errorf", "msg": "x"}', "Syncline knows"),
        (b'{"type": "lost_events", "data": {}}', "how many events were lost"),
        (b'{"type": "value", "data": [1,2]}', "not a tuple of `track_event`"),
        (
            b'{"type": "value", "data": ["track_event", ["a", 1, 2]]}',
            "not a tuple of `track_event`",
        ),
        (value(["name", "x"], ["type", "BEGIN"]), "it has no `ts`"),
        (event("x", "BEGIN", ts=2**63), "it has no `ts`"),
        (event("", "BEGIN"), "it has no `name`"),
        (event("x", "begin"), "is not BEGIN, END, INSTANT or COUNTER"),
        (event("x", "BEGIN", tid=2**32), "out of range"),
        (event("ext4_sync_file", "END"), "has no `ret`"),
        (event("ext4_sync_file", "BEGIN", ino="x"), "its `ino` or `ret` is not a number"),
        (event("block_bio_queue", "INSTANT", dev=1), "`nr_sector` or `rwbs` is missing"),
        (event("sync_start", "INSTANT"), "tracepoint of the patch"),
        (value(["name", "fsync"], ["type", "BEGIN"], ["ts", 1]), "neither `tid` nor `pid`"),
        (b"something else", "does not begin with a time"),
    ],
)
def test_an_unparsed_line_is_shown_with_its_place(line: bytes, why: str, tmp_path: Path) -> None:
    source = tmp_path / "x.json"
    data = b'{"type": "printf", "data": "1 7 a fsync\\n2 7 a fsync_exit\\n"}\n'
    source.write_bytes(data + line.removesuffix(b"\n") + b"\n" + data)
    stderr = run("convert", source, "-o", tmp_path / "x.csv").stderr
    assert "1 of 3 lines: unparsed_line" in stderr
    assert f"{source}:2: " in stderr
    assert why in stderr
    fails(4, "convert", "--max-loss", "0", source, "-o", tmp_path / "x.csv")


def test_the_clock_is_boottime(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(log("btetto-0.23"))
    other = ROOT / "tests" / "data" / "blktrace" / "small1.blktrace.0"
    message = fails(3, "convert", tmp_path / "x.json", other, "-o", tmp_path / "x.csv")
    assert "boottime" in message
