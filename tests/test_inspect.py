"""`syncline inspect`: each line of the output is checked against an independent count of the recording."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from syncline.inputs import Reading, opened
from syncline.report import catalogue
from syncline.report.inspect import _GRANTED, FILLED_BY, NEEDS, ROUTES, uses
from syncline.report.run import run_query, run_report

from tests.coretools import DATA, ROOT
from tests.reference import blktrace, thesis
from tests.test_commands import fails, ok, run
from tools import formats_page

TESTS = ROOT / "tests" / "data"
THESIS = DATA / "small4.log"
BPF = TESTS / "bpf" / "patched-0.27.log"
FTRACE = TESTS / "ftrace" / "small4.trace.txt.gz"
TRACE_DAT = TESTS / "tracecmd" / "small4.dat"
BLKTRACE = TESTS / "blktrace" / "small4.blktrace.0"
BLKPARSE = TESTS / "blktrace" / "small4.blkparse.txt.gz"
STRACE = TESTS / "strace" / "small4.log"
# Kind of event -> another tracepoint of the same kind, if there is one.
ALIKE = {
    "sync_start": "ext4_sync_file_enter",
    "sync_end": "ext4_sync_file_exit",
    "bio_submit": "",
    "bio_complete": "",
    "bio_add_folio": "",
}
KINDS = [THESIS, BPF, FTRACE, TRACE_DAT, BLKTRACE, BLKPARSE, STRACE]


def inspect_all(*arguments: str | Path) -> dict[str, Any]:
    info: dict[str, Any] = json.loads(ok("inspect", "--format", "json", *arguments))
    return info


def inspect_one(*arguments: str | Path) -> dict[str, Any]:
    info: dict[str, Any] = inspect_all(*arguments)["inputs"][0]
    return info


def text_of(file: Path) -> str:
    data = file.read_bytes()
    return (gzip.decompress(data) if file.suffix == ".gz" else data).decode()


def other_counts(info: dict[str, Any]) -> dict[str, int]:
    """Returns the counts of other events by name. No name may occur twice."""
    named = {row["event"]: row["count"] for row in info["other_events"]}
    assert len(named) == len(info["other_events"])
    return named


def entity(info: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(row for row in info["entities"] if row["kind"] == kind)


def answers(info: dict[str, Any]) -> dict[str, str]:
    return {row["report"]: row["answer"] for row in info["reports"]}


@pytest.mark.parametrize("file", sorted(DATA.glob("*.log*")), ids=lambda file: file.name)
def test_a_log_of_the_thesis_matches_the_reference(file: Path) -> None:
    info = inspect_one(file)
    tables = thesis.read_file(file)
    losses = thesis.Losses(file.name)
    data = file.read_bytes()
    data = gzip.decompress(data) if file.suffix == ".gz" else data
    events, lines = thesis.parse(data, losses)
    assert (info["format"], info["lines"], info["syncs"]) == ("bpftrace", lines, len(tables.sync))
    assert sum(info["events"].values()) == len(events)
    times = [event.ts for event in events]
    span = info["span"]
    assert (span["first_ns"], span["last_ns"]) == (min(times), max(times))
    assert span["duration_ns"] == max(times) - min(times)
    assert {row["reason"]: row["count"] for row in info["losses"]} == {
        row["reason"]: row["count"] for row in tables.loss
    }
    syncing = {row["tid"] for row in [*tables.sync, *(c for c in tables.call if c["unmatched"])]}
    threads = syncing | {row["tid"] for row in tables.bio}
    assert (entity(info, "thread")["count"] or 0) == len(threads)
    assert (entity(info, "thread")["with_syncs"] or 0) == len(syncing)
    assert (entity(info, "file")["count"] or 0) == len(
        {row["path"] for row in tables.sync} - {None}
    )
    # Logs of the thesis name no device or process, so their number is unknown, not 0.
    assert (entity(info, "device")["count"], entity(info, "process")["count"]) == (None, None)
    known = {row["column"]: (row["known"], row["of"]) for row in info["columns"]}
    with_bios = sum(bool(row["bios"]) for row in tables.sync)
    for column, (count, of) in known.items():
        have = [row for row in tables.sync if row.get(column) is not None]
        assert count == len(have), column
        limited = column in ("before_submit_ns", "after_complete_ns")
        assert of == (with_bios if limited else len(tables.sync)), column
    for row, table in zip(info["attribution"], (tables.sync, tables.bio), strict=True):
        confidence = Counter(r["confidence"] for r in table if r["confidence"])
        total = sum(confidence.values())
        assert row["count"] == total
        for word in ("exact", "inferred", "unknown"):
            assert row[word] == (confidence[word] / total if total else None)
    assert (info["clock"]["name"], info["clock"]["is_recorded"]) == ("boottime", False)


def assert_issues_are_counted(info: dict[str, Any], words: Counter[str]) -> None:
    """Requests that write are events of their own. Reads and flushes are other events."""
    writes, others = info["events"]["block_issue"], other_counts(info).get("block_rq_issue", 0)
    assert writes > 0
    assert writes + others == words["block_rq_issue"]


def test_ring_buffer_text_matches_a_text_search() -> None:
    info = inspect_one(FTRACE)
    # `COMM-PID [CPU] FLAGS TIME: NAME...`
    words = Counter(re.findall(r"^ .*?-\d+ +\[\d+\] .*? *[\d.]+: (\w+)", text_of(FTRACE), re.M))
    kinds = info["events"]
    for name, alike in ALIKE.items():
        assert kinds[name] == words[name] + words[alike] > 0, name
    named = other_counts(info)
    assert sum(named.values()) == kinds["other"]
    for name in ("writeback_mark_inode_dirty", "writeback_dirty_folio"):
        assert named[name] == words[name] > 0, name
    assert_issues_are_counted(info, words)
    assert (info["clock"]["name"], info["clock"]["is_recorded"]) == ("unknown", False)
    assert entity(info, "file system")["top"][0]["name"] == "ext4"


def test_a_trace_dat_matches_the_output_of_trace_cmd() -> None:
    info = inspect_one(TRACE_DAT)
    printed = text_of(TESTS / "tracecmd" / "small4.report.txt.gz")
    words = Counter(re.findall(r"\[\d+\] .*? [\d.]+: (\w+): ", printed))
    kinds, named = info["events"], other_counts(info)
    for name, alike in ALIKE.items():
        assert kinds[name] == words[name] + words[alike] > 0, name
    assert kinds["other"] == sum(named.values())
    # Events whose kind does not depend on their fields.
    for name in ("writeback_mark_inode_dirty", "sys_enter_write"):
        assert named[name] == words[name] > 0, name
    assert_issues_are_counted(info, words)
    assert (info["clock"]["name"], info["clock"]["is_recorded"]) == ("local", True)
    assert info["lines"] == 0


def test_blktrace_matches_its_records() -> None:
    info = inspect_one(BLKTRACE)
    files = [file.read_bytes() for file in sorted(BLKTRACE.parent.glob("small4.blktrace.*"))]
    rows = blktrace.rows(files)
    assert sum(info["events"].values()) == len(rows)
    words = Counter(row["event"] for row in rows)
    named = other_counts(info)
    # Syncline uses none of these actions.
    for word in "MGPU":
        assert named[word] == words[word] > 0
    for word, kind in (("I", "block_insert"), ("D", "block_issue"), ("C", "block_complete")):
        assert named.get(word, 0) + info["events"][kind] == words[word] > 0
    assert sum(named.values()) == info["events"]["other"]
    # blktrace records no sync, so whether there were some is not known.
    assert info["syncs"] is None
    assert set(answers(info).values()) == {"no", "part", "full"}
    assert {name for name, answer in answers(info).items() if answer != "no"} == {
        "summary",
        "device",
        "failures",
        "losses",
        "writeback",
    }
    text = inspect_one(BLKPARSE)
    assert other_counts(text) == {word: named[word] for word in other_counts(text)}
    assert text["clock"]["name"] == "relative"
    # A message in the trace records the time of day of its start, which gives the offset to real time.
    offset = info["clock"]["realtime_offset_ns"]
    assert info["span"]["first_realtime_ns"] == info["span"]["first_ns"] + offset


def test_a_strace_log_matches_a_text_search() -> None:
    info = inspect_one(STRACE)
    lines = text_of(STRACE).splitlines()
    calls = Counter(
        re.findall(r"^\d+ +[\d.]+ (?:<\.\.\. )?(\w+)(?=\(| resumed)", "\n".join(lines), re.M)
    )
    assert info["lines"] == len(lines)
    assert info["syncs"] == sum(bool(re.search(r"\bfsync\(", line)) for line in lines)
    # A call in two parts, `write(... <unfinished ...>` and `<... write resumed>`, is one operation.
    begun = sum(bool(re.search(r" (openat|write)\(", line)) for line in lines)
    assert info["events"]["file_return"] == begun > 0
    # The end of a thread is an operation that does not return.
    ends = sum(" +++ " in line for line in lines)
    assert info["events"]["file_call"] == begun + ends
    assert {*calls} == {"openat", "write", "fsync"}
    named = other_counts(info)
    assert "ended" not in named
    assert named["signal"] == sum(" --- " in line for line in lines)
    assert sum(named.values()) == info["events"]["other"]
    assert info["clock"]["realtime_offset_ns"] == 0
    # 1795196964 is 2026-11-20 17:49:24 UTC (date -u -d @1795196964).
    assert "2026-11-20 17:49:24 UTC" in ok("inspect", STRACE)
    # strace does not record bios, so their number is unknown, and no request has anything to attribute.
    assert [row["count"] for row in info["attribution"]] == [0, None]
    assert [row["exact"] for row in info["attribution"]] == [None, None]
    assert answers(info)["amount"] == answers(info)["empty"] == answers(info)["phases"] == "no"


def test_other_events_match_the_low_level_log(tmp_path: Path) -> None:
    """The kind of some events depends on their fields: a write may be a sync, a completion may have data."""
    for file in KINDS:
        ok("convert", "-q", file, "-o", tmp_path / "x.events.jsonl")
        events = Counter(
            json.loads(line).get("event") for line in (tmp_path / "x.events.jsonl").open()
        )
        info = inspect_one(file)
        named = other_counts(info) if info["other_events"] else {}
        assert all(count <= events[name] for name, count in named.items()), file
        again = inspect_one(tmp_path / "x.events.jsonl")
        # The low-level log has operations on files by their names, and not what they were done to.
        read_again = other_counts(again)
        if info["events"]["file_call"]:
            read_again = {name: read_again[name] for name in named}
        assert read_again == named, file
        # The low-level log does not keep the clock of its input.
        assert (again["clock"]["name"], again["clock"]["is_recorded"]) == ("unknown", False)


@pytest.mark.parametrize(
    "file",
    [
        *KINDS,
        DATA / "odsync.log",
        DATA / "empty.log",
        DATA / "sync.log",
        TESTS / "bpf" / "stock-tracepoints.log.gz",
    ],
    ids=lambda file: file.name,
)
def test_the_answer_for_a_report_matches_its_output(file: Path) -> None:
    info = {row["report"]: row for row in inspect_one(file)["reports"]}
    assert list(info) == catalogue.names()
    with opened(str(file), Reading()) as engine:
        for name, entry in info.items():
            table = run_report(engine, name)
            columns = {
                column: [row[at] for row in table.rows if row[at] is not None]
                for at, column in enumerate(table.columns)
            }
            null = {column for column, values in columns.items() if not values and table.rows}
            if name == "summary":
                # Each row is one metric.
                values = [row[table.columns.index("value")] for row in table.rows]
                assert entry["answer"] != "no"
                known = entry["answer"] == "full"
                assert known == (
                    None not in values and "journal_wait_avg" in {r[0] for r in table.rows}
                )
            elif entry["answer"] == "full":
                # A loss may have no time, and a total of 0 has no shares.
                is_zero = name == "amount" and not sum(columns["bytes"])
                allowed = (
                    {"bytes_share"} if is_zero else {"first_ts_ns", "last_ts_ns", "not_recorded"}
                )
                if name == "device":
                    # Bios may have no issue and no flags.
                    allowed |= {"queue_ns", "device_ns", "flushes", "fua"}
                    allowed |= {"flush_ns", "max_flush_ns", "splits", "requeues", "requeue_ns"}
                if name == "journal":
                    # Only jbd2 has steps, and a thread.
                    allowed |= {"comm", "locking_ns", "flushing_ns", "logging_ns"}
                    # Bios may have no flags, and only fast commits have a status.
                    allowed |= {
                        "data_bios",
                        "data_bytes",
                        "log_bios",
                        "log_bytes",
                        "status",
                        "reason",
                    }
                if name == "whose-data":
                    # Commits may not be recorded, and only other files are named.
                    allowed |= {"commits", "path", "writers"}
                # One group differs from nothing, and a commit may not be in the recording.
                allowed |= {"differs", "commit_share"} if name == "groups" else set()
                # Threads by name have no process id.
                allowed |= {"id"} if name == "parallel" else set()
                if name == "neighbours":
                    # Most recordings are too short for a comparison, and what was not recorded has no name.
                    allowed |= {
                        "compared_ns",
                        "compared_error_ns",
                        "quiet_syncs",
                        "process",
                        "cgroup",
                        "low_ns",
                    }
                    allowed |= {"high_ns", "bios", "bytes", "sync_id"}
                if name == "writeback":
                    # Metadata are of no file, and one bio of a file follows none.
                    allowed |= {"path", "syncs", "sequential_share", "median_ns"}
                if name == "bystanders":
                    # Only what a kernel worker writes has a writer, and only a run directory knows processes.
                    allowed |= {"writers", "process", "cgroup"}
                    # Only what a commit wrote has it.
                    allowed |= {"others_bytes"}
                assert null <= allowed, (name, null)
            elif name == "durability" and entry["answer"] == "part":
                # Without waits for flushes, it does not say that there was none.
                assert (
                    entry["unknown_columns"] != ["flush_ns"] or "no flush" not in columns["verdict"]
                )
            elif name == "device" and entry["answer"] == "part":
                # Without requests or their waits, the only flushes with a length are those of bios.
                assert entry["unknown_columns"] == ([] if entry["reason"] else ["flush_ns"])
                assert "flush_ns" in null or sum(columns["flushes"])
            elif name == "writeback" and entry["answer"] == "part":
                # Without an event of a sync, no bio is known to be of one.
                assert entry["reason"]
                assert "sync" not in columns["origin"]
            elif entry["answer"] == "part" and not table.rows:
                assert name in ("failures", "neighbours"), "no failure, or no neighbour"
            elif entry["answer"] == "part":
                # The names that reports give to derived columns.
                alike = {"syscall_ns": "latency", "tid": "threads", "journal_ns": "started_by"}
                shown = " ".join(null) + (" " if name != "latency" else " latency writeback")
                # Waits for the journal are phases of several names.
                shown += " ".join(columns.get("not_recorded", [])).replace("commit", "journal")
                words = [
                    word
                    for c in entry["unknown_columns"]
                    for word in (c.split("_")[0], alike.get(c, c))
                ]
                # What groups lacks is only missing in the text of `differs`. Without inodes, whose-data has fewer kinds.
                assert null or name in ("latency", "phases", "groups", "whose-data"), name
                in_text = name in ("groups", "whose-data")
                assert in_text or any(word in shown for word in words), (name, null, words)
            elif table.rows and name != "losses":
                # Rows without figures: an unknown file, stack or time.
                figures = null | set(NEEDS[name][0])
                unknown = {"path", "stack", "time_ns", "bytes", "start_ns", "name"}
                assert figures & unknown, name


ADVICE = {
    "bpftrace": [TESTS / "bpf" / "patched.log.gz"],
    "strace": [STRACE],
    # The ring buffer of a patched kernel has the same columns.
    "ring-buffer": [TRACE_DAT],
    "dynamic-events": [TESTS / "dynamic-events" / "ext4.dat.gz"],
}
# Columns that need more than the route: bpftrace next to it, a run directory, a container, or the waits of the newest patch
# (tests/test_waits.py).
NEEDS_MORE = {
    "ring-buffer": {"stack", "pid", "process", "cgroup", "journal_ns", "flush_ns", "other_ns"}
    # Its recording here has no wake-ups.
    | {"cpu_wait_ns"},
    "bpftrace": {"pid", "process", "cgroup"},
    "dynamic-events": {"stack", "pid", "process", "cgroup", "container_path"},
    "strace": set(),
}


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_records_the_columns_that_it_is_suggested_for(route: str) -> None:
    known = {
        row["column"]
        for file in ADVICE[route]
        for row in inspect_one(file)["columns"]
        if row["known"]
    }
    advised = {c for filler in FILLED_BY if route in filler.routes for c in filler.columns}
    assert advised - known == NEEDS_MORE[route] & advised
    # The route records no column that it is not suggested for.
    if route == "strace":
        assert known <= advised | {"comm", "pid"}


def test_every_column_of_a_report_has_a_suggested_route() -> None:
    """Each column of a request is in FILLED_BY, or is one that needs no suggestion."""
    described = {row[0] for row in _describe("syncline_sync")}
    advised = [column for filler in FILLED_BY for column in filler.columns]
    assert len(advised) == len(set(advised))
    assert set(advised) <= described
    other = {"ts_ns", "run", "sync_id", "call_sync_id", "incomplete", "confidence"}
    other |= {"first_offset", "last_offset"}
    assert described == set(advised) | other
    assert set(NEEDS) <= set(catalogue.names())
    for name, groups in NEEDS.items():
        assert {column for group in groups for column in group} <= uses(name)[1], name


def _describe(table: str) -> list[Any]:
    with opened(str(THESIS), Reading()) as engine:
        return run_query(engine, f"DESCRIBE {table}").rows


def test_the_docs_suggest_the_same_routes() -> None:
    page = (ROOT / "docs" / "reference" / "inspect.md").read_text()
    for filler in FILLED_BY:
        columns, routes = ", ".join(filler.columns), ", ".join(filler.routes)
        assert f"| {columns} | {routes} | {filler.text} |" in page


def test_traces_and_tables_give_the_figures_of_the_log(tmp_path: Path) -> None:
    want = inspect_one(THESIS)
    for name in ("t.pftrace", "t/"):
        ok("convert", "-q", THESIS, "-o", f"{tmp_path}/{name}")
        info = inspect_one(f"{tmp_path}/{name}")
        for key in (
            "events",
            "span",
            "syncs",
            "entities",
            "attribution",
            "columns",
            "unknown_columns",
            "reports",
            "lines",
        ):
            assert info[key] == want[key], (name, key)
        # Traces and tables do not keep whether the log recorded its clock, the other events, or unparsed lines.
        assert (info["clock"]["is_recorded"], info["other_events"], info["unparsed_lines"]) == (
            None,
            None,
            None,
        )
    for name in ("t.csv", "t.parquet", "t.jsonl"):
        ok("convert", "-q", THESIS, "-o", tmp_path / name)
        info = inspect_one(tmp_path / name)
        assert info["columns"] == want["columns"]
        # A high-level log does not hold these, so they are unknown, not 0.
        assert (info["events"], info["losses"], info["lines"]) == (None, None, None)
        assert info["attribution"][1]["count"] is None
        assert answers(info)["losses"] == "no"
        assert "syncline_call" in info["reports"][0]["missing_tables"]
    runs = tmp_path / "runs"
    for run_name in ("a", "b"):
        ok("convert", "-q", THESIS, "-o", f"{runs}/{run_name}/")
    info = inspect_one(runs)
    assert (info["runs"], info["syncs"], info["lines"]) == (2, 200, 2 * want["lines"])
    assert info["span"]["duration_ns"] == 2 * want["span"]["duration_ns"]
    assert info["span"]["first_ns"] is None
    assert entity(info, "thread")["count"] == 8


def test_standard_input_is_inspected_like_a_file() -> None:
    done = run("inspect", "-", "--format", "json", stdin=THESIS.read_bytes())
    assert json.loads(done.stdout)["inputs"][0]["syncs"] == 100


def test_torn_lines_are_reported_with_their_location(tmp_path: Path) -> None:
    log = tmp_path / "torn.log"
    log.write_bytes(THESIS.read_bytes() + b"48250740680 637 wl bio_comp\n?!\n")
    info = inspect_one(log)
    lost = {row["reason"]: row for row in info["losses"]}
    assert lost["unparsed_line"]["count"] == 2
    assert lost["unparsed_line"]["example"] == f"{log}:988: 48250740680 637 wl bio_comp"
    assert len(info["unparsed_lines"]) == 2
    assert "torn.log:989: ?!" in ok("inspect", log)


def recorded(
    folder: Path, boot: str, log: Path = THESIS, name: str = "events.log", source: str = "bpftrace"
) -> Path:
    """Creates a run directory like that of `syncline record`."""
    folder.mkdir()
    (folder / name).write_bytes(log.read_bytes())
    ends = {
        "boot_id": boot,
        "host": "h",
        "clocks_ns": {"boottime": 5, "monotonic": 5, "realtime": 1_795_196_964_000_000_005},
    }
    manifest = {
        "route": "bpftrace",
        "inputs": [{"file": name, "source": source}],
        "before": ends,
        "after": ends,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_a_recording_has_its_boot_id_and_time_of_day(tmp_path: Path) -> None:
    info = inspect_one(recorded(tmp_path / "run", "b-1"))
    assert (info["clock"]["boot_id"], info["clock"]["realtime_offset_ns"]) == (
        "b-1",
        1_795_196_964 * 10**9,
    )
    # 48.05 s after 17:49:24.
    assert "2026-11-20 17:50:12 UTC" in ok("inspect", tmp_path / "run")


def test_clocks_agree_only_within_one_boot(tmp_path: Path) -> None:
    logs = [TESTS / "bpf" / name for name in ("patched-0.17.log", "patched-0.27.log")]
    boots = [re.search(r"boot_id=?:? ?(\S+)", text_of(log)).group(1) for log in logs]  # type: ignore[union-attr]
    info = inspect_all(*logs)["together"]
    same = boots[0] == boots[1]
    assert (info["clocks"], info["convertible"]) == (
        ("agree", True) if same else ("disagree", False)
    )
    done = run("convert", "-q", *logs, "-o", tmp_path / "both.pftrace")
    assert (done.returncode == 0) == same
    # A log of another boot: the boot id in the header is changed.
    other = tmp_path / "other.log"
    other.write_text(text_of(logs[0]).replace(boots[0], "another"))
    info = inspect_all(logs[0], other)["together"]
    assert (info["clocks"], info["convertible"]) == ("disagree", False)
    assert "another" in info["text"]
    assert "different boots" in fails(3, "convert", logs[0], other, "-o", tmp_path / "x.pftrace")
    # If the logs do not record the boot id, the manifests decide.
    a, b, c = (
        recorded(tmp_path / name, boot) for name, boot in (("a", "1"), ("b", "2"), ("c", "1"))
    )
    with (b / "events.log").open("a") as log:
        log.write("\n")
    with (c / "events.log").open("a") as log:
        log.write("\n\n")
    assert inspect_all(a, b)["together"]["clocks"] == "disagree"
    assert "different boots" in fails(3, "convert", a, b, "-o", tmp_path / "x.pftrace")
    assert inspect_all(a, c)["together"]["convertible"] is True
    assert not (tmp_path / "x.pftrace").exists()


def test_inputs_with_unknown_or_different_clocks(tmp_path: Path) -> None:
    info = inspect_all(THESIS, STRACE)["together"]
    assert (info["clocks"], info["convertible"]) == ("disagree", False)
    assert "realtime" in info["text"]
    assert "are not on one clock" in info["text"]
    for inputs in ((THESIS, STRACE), (STRACE, THESIS)):
        assert info["text"] in fails(3, "convert", *inputs, "-o", tmp_path / "x.pftrace")
    lines = THESIS.read_bytes().splitlines(keepends=True)
    for number, part in enumerate((lines[:500], lines[500:])):
        (tmp_path / str(number)).write_bytes(b"".join(part))
    info = inspect_all(tmp_path / "0", tmp_path / "1")["together"]
    assert (info["clocks"], info["convertible"]) == ("unknown", True)
    # The two inputs are pieces of one log.
    assert [row["log"] for row in info["logs"]] == [0, 0]
    info = inspect_all(STRACE, TESTS / "strace" / "rename.log")["together"]
    assert (info["clocks"], info["convertible"]) == ("agree", True)
    ok("convert", "-q", THESIS, "-o", tmp_path / "t.pftrace")
    info = inspect_all(THESIS, tmp_path / "t.pftrace")["together"]
    assert (info["clocks"], info["convertible"]) == (None, False)
    assert "t.pftrace" in info["text"]


def test_bad_input_is_an_error_and_other_inputs_are_still_described(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "elf").write_bytes(b"\x7fELF" + bytes(1000))
    (tmp_path / "main.baseline.json").write_text('{"syncline_baseline": 1}')
    for name, word in (
        ("empty", "is empty"),
        ("elf", "ELF"),
        ("main.baseline.json", "stored baseline"),
        ("no", "no such file"),
    ):
        assert word in fails(3, "inspect", tmp_path / name)
        assert fails(3, "report", tmp_path / name)
    assert fails(2, "inspect", THESIS, "--from", "dtrace")
    done = run("inspect", "--format", "json", tmp_path / "empty", THESIS)
    assert done.returncode == 3
    info = json.loads(done.stdout)
    assert [each["input"] for each in info["inputs"]] == [str(THESIS)]
    assert info["together"]["convertible"] is False
    done = run("inspect", THESIS, "--max-loss", "0")
    assert (done.returncode, done.stdout) == (4, "")
    ok("convert", "-q", THESIS, "-o", tmp_path / "t.pftrace")
    assert "would have no effect" in fails(2, "inspect", tmp_path / "t.pftrace", "--window", "1s")


@pytest.mark.parametrize("engine", ["duckdb", "embedded"])
def test_both_engines_give_the_same_description(engine: str) -> None:
    for file in (THESIS, STRACE, BLKTRACE, TESTS / "bpf" / "patched.log.gz"):
        want, info = inspect_one(file), inspect_one(file, "--engine", engine)
        assert info == want, file


def test_a_report_without_rows_says_what_is_not_recorded() -> None:
    """A report does not claim that there was nothing, if the input could not show it."""
    for engine in ("duckdb", "embedded"):
        names = ("bystanders", "phases", "device", "whose-data", "slow-writes", "failures")
        text = ok("report", STRACE, *names, "--engine", engine)
        lines = [line for line in text.splitlines() if line.startswith("No rows")]
        assert (
            lines[:2]
            == [
                "No rows: the column start_ns is not recorded. The routes ring-buffer, dynamic-events and"
                " bpftrace record it."
            ]
            * 2
        )
        assert lines[2].startswith("No rows: no bio has a known device and completion. The routes")
        assert lines[3].startswith("No rows: the column bios is not recorded.")
        assert lines[4] == (
            "No rows: waits of writes are not recorded. The route dynamic-events records them."
        )
        # Its calls say how they ended, so it could have shown failures.
        assert lines[5:] == ["No rows: none of 100 syncs is recorded as failed."]
    assert "no bio has a known device" in ok("report", DATA / "parallel4.log", "bystanders")
    assert "waits of writes are not recorded" in ok("inspect", STRACE)
    # This one has probes for waits of writes.
    probed = ok("inspect", TESTS / "dynamic-events" / "run")
    assert "it has no wait of a write of 1 ms or longer" in probed
    markdown = ok("report", STRACE, "device", "--format", "md")
    assert "No rows: no bio has a known device and completion." in markdown
    device = "note: device: no rows: no bio has a known device and completion. The routes"
    failures = "note: failures: no rows: none of 100 syncs is recorded as failed."
    for form, wanted in {
        "csv": {"device": device},
        "json": {"device": device, "failures": failures},
    }.items():
        done = run("report", STRACE, *wanted, "--format", form)
        assert "no rows" not in done.stdout
        notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
        for note, want in zip(notes, wanted.values(), strict=True):
            assert note.startswith(want)


def test_reports_of_what_went_wrong_say_that_nothing_did() -> None:
    from syncline.inputs import opened
    from syncline.reading import Reading
    from syncline.report.inspect import why_empty

    data = Path(__file__).parent / "data"
    with opened(str(data / "thesis" / "empty.log"), Reading()) as engine:
        of = engine.query("SELECT COUNT(*) FROM syncline_sync").rows[0][0]
        assert why_empty(engine, "failures") == f"none of {of} syncs is recorded as failed."
        assert (
            why_empty(engine, "losses") == "nothing is known to be lost, and nothing was left out."
        )


REDIRECTED = """\
wl-7 [000] .....   100.000010: block_bio_queue: 253,0 WS 8 + 8 [wl]
wl-7 [000] .....   100.000020: block_bio_remap: 8,0 WS 2056 + 8 <- (253,0) 8
wl-7 [000] .....   100.000030: block_rq_issue: 8,0 WS 4096 () 2056 + 8 [wl]
wl-7 [000] .....   100.000900: block_rq_complete: 8,0 WS () 2056 + 8 [0]
"""


def test_what_is_taken_for_granted_is_said(tmp_path: Path) -> None:
    """Each sentence is true of the one input, and not of the other one, which holds what it misses."""
    both = (TESTS / "lost" / "lost-enter-of-both" / "whole.txt").read_text()
    without = "".join(line for line in both.splitlines(True) if "block_bio_queue" not in line)
    returning = both.replace("sys_exit_fsync", "sys_exit_nothing")
    alone = REDIRECTED.replace("block_bio_remap", "nothing")
    names = {
        "whole": (both, set()),
        "submits": (without, {"submits"}),
        "returns": (returning, {"returns"}),
        "remaps": (REDIRECTED, {"remaps"}),
        "one device": (alone.replace("8,0", "253,0"), set()),
    }
    for name, (text, expected) in names.items():
        log = tmp_path / f"{name}.txt"
        log.write_text(text)
        (described,) = json.loads(ok("inspect", log, "--format", "json"))["inputs"]
        assert described["granted"] == [_GRANTED[one] for one in _GRANTED if one in expected], name


def test_the_page_says_which_reports_each_recording_answers() -> None:
    assert formats_page.PAGE.read_text() == formats_page.text(), "python -m tools.formats_page"
