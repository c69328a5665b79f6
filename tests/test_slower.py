"""The `*slower` tables of bcc and libbpf-tools: recordings against what the program did, generated tables, damaged ones, and what is said of them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from syncline import _core

from tests.coretools import Rows, core, syncs
from tests.coretools import tables as read_tables
from tests.reference import slower
from tests.reference.slower import DAY, SECOND
from tests.test_commands import fails, run

DATA = Path(__file__).parent / "data/slower"
RECORDINGS = sorted(path.name for path in DATA.glob("*.txt"))
# Those that a tool has made, and not this project by its source.
RECORDED = [name for name in RECORDINGS if (DATA / name).with_suffix(".truth").exists()]
HEADER = "TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME\n"
BANNER = "Tracing ext4 operations slower than 10 ms\n" + HEADER
ROW = "06:35:01 postgres       2211   S 0       0          61.22 0000000100000001\n"
CSV = "ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE\n"
END = DAY + (6 * 3600 + 35 * 60 + 1) * SECOND


def rows(tables: dict[str, Rows]) -> list[tuple[object, ...]]:
    columns = ("ts_ns", "dur_ns", "pid", "comm", "path", "fs", "ret")
    return sorted((tuple(row[c] for c in columns) for row in tables["sync"]), key=str)


def expected(syncs: list[slower.Sync]) -> list[tuple[object, ...]]:
    return sorted(((s.ts, s.dur, s.pid, s.comm, s.path, s.fs, s.ret) for s in syncs), key=str)


def meta(tables: dict[str, Rows], key: str) -> str | None:
    return next((row["value"] for row in tables["meta"] if row["key"] == key), None)


def losses(tables: dict[str, Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in tables["loss"] if row["severity"] == "loss"}


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_gives_the_syncs_of_the_second_reader(name: str, tmp_path: Path) -> None:
    text = (DATA / name).read_bytes()
    tables = core(tmp_path, text)
    assert rows(tables) == expected(slower.read(text.decode()))
    assert losses(tables) == {}
    # A table says nothing of these.
    for row in tables["sync"]:
        for column in ("tid", "op", "syscall_ns", "writeback_ns", "bytes", "bios", "id", "ino"):
            assert row[column] is None, column
    assert not tables["bio"]
    assert not tables["call"]


def truth_of(name: str) -> list[list[str]]:
    text = (DATA / name).with_suffix(".truth").read_text()
    return [line.split("\t") for line in text.splitlines()]


def paths_of(file: str, name: str) -> list[str | None]:
    """What a tool may print of the name of a file: libbpf-tools keep 31 bytes, bcc 32 or 40."""
    if "libbpf" in name:
        return [slower.path_of(file[:31], "F")]
    return [slower.path_of(file[:kept], "S") for kept in (32, 40)]


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_has_what_the_program_did(name: str, tmp_path: Path) -> None:
    """Each sync of the program that took longer than the threshold is a row, which took no longer than its call."""
    tables = core(tmp_path, (DATA / name).read_bytes())
    slower_than = meta(tables, "slower_than_ns") or "0"
    threshold = 1_000_000 if slower_than == "unknown" else int(slower_than)
    truth = truth_of(name)
    (pid,) = {int(line[0]) for line in truth}
    found = [row for row in tables["sync"] if row["pid"] == pid]
    assert {row["comm"] for row in found} == {line[1] for line in truth}
    count = 0
    for file in {line[2] for line in truth}:
        calls = sorted(int(end) - int(begin) for _, _, of, _, begin, end, _ in truth if of == file)
        shown = sorted(row["dur_ns"] for row in found if row["path"] in paths_of(file, name))
        count += len(shown)
        assert sum(ns > threshold + 20_000_000 for ns in calls) <= len(shown) <= len(calls)
        # The sync function is inside of its call, so the slowest one fits into the slowest call.
        for dur, call in zip(reversed(shown), reversed(calls), strict=False):
            assert dur <= call + 10_000
    assert count == len(found)


@pytest.mark.parametrize("name", [name for name in RECORDED if "csv" in name])
def test_times_with_commas_are_exact(name: str, tmp_path: Path) -> None:
    """Each row lies within a call of the program, on the clock of both."""
    calls = [
        (comm, file, int(begin), int(end)) for _, comm, file, _, begin, end, _ in truth_of(name)
    ]
    rows = core(tmp_path, (DATA / name).read_bytes())["sync"]
    (pid,) = {int(line[0]) for line in truth_of(name)}
    of_program = [row for row in rows if row["pid"] == pid]
    assert len(of_program) == len(calls)
    for row in of_program:
        ts, end = row["ts_ns"], row["ts_ns"] + row["dur_ns"]
        # A time in us has lost its last digits.
        around = [
            c for c in calls if c[2] - 2000 <= ts and end <= c[3] + 2000 and c[0] == row["comm"]
        ]
        assert len(around) == 1
        assert row["path"] in paths_of(around[0][1], name)


@pytest.mark.parametrize("seed", range(60))
def test_a_generated_table_gives_its_syncs(seed: int, tmp_path: Path) -> None:
    text, syncs, _ = slower.generated(random.Random(seed))
    assert expected(slower.read(text)) == expected(syncs)
    if not syncs:
        with pytest.raises(_core.CoreError, match="no row of a sync"):
            core(tmp_path, text.encode())
        return
    tables = core(tmp_path, text.encode())
    assert rows(tables) == expected(syncs)
    assert losses(tables) == {}


def test_a_table_that_is_cut_anywhere_gives_no_wrong_sync(tmp_path: Path) -> None:
    text = (BANNER + ROW * 2 + ROW.replace("61.22", "12.00")).encode()
    whole = rows(core(tmp_path, text))
    for end in range(1, len(text)):
        try:
            found = rows({"sync": syncs(tmp_path, text[:end])})
        except _core.CoreError as error:
            assert error.args[2] == "input"
            continue
        for row in found:
            # A name that has lost its end is a name, too.
            assert any(
                row[:4] == one[:4] and str(one[4]).startswith(str(row[4])) for one in whole
            ), end


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (ROW.replace("61.22", "61,22"), "has a comma"),
        (ROW.replace("61.22", "61.2"), "it is neither"),
        (ROW.replace("06:35:01", "06:35:71"), "it is neither"),
        (ROW.replace(" S ", " Z "), "it is neither"),
        (ROW.replace("2211", "22a1"), "it is neither"),
        (ROW.replace("0000000100000001", ""), "it is neither"),
        ("87847348,postgres,2211,S,0,0,61220,wal\n", "another clock"),
        (
            "0.000000    supervise      1950   xvda1   W 13092560   4096      0.74\n",
            "it is neither",
        ),
    ],
)
def test_a_line_that_is_not_used_is_counted(line: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(BANNER + line + ROW)
    tables = core(tmp_path, path.read_bytes())
    assert losses(tables) == {"unparsed_line": 1}
    assert [row[:2] for row in rows(tables)] == [(END - 61_220_000, 61_220_000)]
    said = run("inspect", str(path)).stderr + run("inspect", str(path)).stdout
    assert "x.txt:3: " in said
    assert why in said


@pytest.mark.parametrize("name", ["libbpf-ext4.txt", "libbpf-ext4-csv.txt"])
def test_a_trace_holds_the_syncs_of_its_table(name: str, tmp_path: Path) -> None:
    trace = tmp_path / "x.pftrace"
    run("convert", str(DATA / name), "-o", str(trace))
    direct, through = core(tmp_path, (DATA / name).read_bytes()), tmp_path / "tables"
    run("convert", str(trace), "-o", f"{through}/")
    assert rows(read_tables(through)) == rows(direct)


def test_a_row_is_as_valid_in_the_low_level_log_as_in_tables(tmp_path: Path) -> None:
    """A read that would have begun before the machine is a damaged line, whether reads are kept or not."""
    text = CSV + "1000,db,7,R,0,0,900000,a\n2000000,db,7,S,0,0,900000,a\n"
    events = tmp_path / "x.events.jsonl"
    (tmp_path / "x.txt").write_text(text)
    run("convert", str(tmp_path / "x.txt"), "-o", str(events))
    for log in (text.encode(), events.read_bytes()):
        assert losses(core(tmp_path, log)) == {"unparsed_line": 1}


def test_lost_events_are_a_loss(tmp_path: Path) -> None:
    text = BANNER + "lost 7 events on CPU #1\n" + ROW + "Possibly lost 3 samples\n"
    assert losses(core(tmp_path, text.encode())) == {"lost_by_tracer": 10}


def test_names_may_look_like_columns(tmp_path: Path) -> None:
    comm = "a 7 S 0 0 0.01"
    row = f"06:35:01 {comm:<14} {2211:<6} S 0       0          61.22 x 8 S 0 0 0.02 y\n"
    assert [r[2:5] for r in rows(core(tmp_path, (BANNER + row).encode()))] == [
        (2211, comm, ".../x 8 S 0 0 0.02 y")
    ]
    # Where somebody has changed the blanks, the first place that fits is taken.
    squeezed = " ".join(ROW.split()) + "\n"
    assert rows(core(tmp_path, (BANNER + squeezed).encode())) == rows(
        core(tmp_path, (BANNER + ROW).encode())
    )


def test_two_tables_in_one_text_have_their_own_file_systems(tmp_path: Path) -> None:
    text = BANNER + ROW + "\n" + BANNER.replace("ext4", "XFS") + ROW + "^C\n" + HEADER + ROW
    tables = core(tmp_path, text.encode())
    assert [row["fs"] for row in tables["sync"]] == ["ext4", "xfs", None]
    assert losses(tables) == {}


def test_times_of_day_go_on_after_midnight(tmp_path: Path) -> None:
    times = ("23:59:59", "00:00:01", "12:00:00")
    text = BANNER + "".join(ROW.replace("06:35:01", time) for time in times)
    ends = [row["ts_ns"] + row["dur_ns"] for row in core(tmp_path, text.encode())["sync"]]
    assert ends == [2 * DAY - SECOND, 2 * DAY + SECOND, 2 * DAY + DAY // 2]
    # A call may have begun before the midnight of the first row.
    text = BANNER + ROW.replace("06:35:01", "00:00:01").replace("61.22", "5000.00")
    (row,) = core(tmp_path, text.encode())["sync"]
    assert (row["ts_ns"], row["dur_ns"]) == (DAY - 4 * SECOND, 5 * SECOND)


def test_a_long_sync_is_not_late(tmp_path: Path) -> None:
    """Rows are printed when a call is over, so the start of a long one is far before the row."""
    text = BANNER + ROW + ROW.replace("61.22", "1800000.00")
    tables = core(tmp_path, text.encode())
    assert losses(tables) == {}
    assert {row["dur_ns"] for row in tables["sync"]} == {61_220_000, 1800 * SECOND}
    assert {row["confidence"] for row in tables["sync"]} == {"exact"}


def test_syncs_of_one_process_may_overlap(tmp_path: Path) -> None:
    text = CSV + "2000000,db,7,S,0,0,900000,a\n2100000,db,7,S,0,0,500000,b\n"
    tables = core(tmp_path, text.encode())
    assert [(r["ts_ns"], r["dur_ns"], r["path"]) for r in tables["sync"]] == [
        (1_100_000_000, 900_000_000, ".../a"),
        (1_600_000_000, 500_000_000, ".../b"),
    ]
    assert meta(tables, "clock") == "monotonic"


def test_the_unit_of_a_csv_is_that_of_its_header(tmp_path: Path) -> None:
    row = "2000000000,db,7,F,LL_MAX,0,900000,a\n"
    for header in (CSV.replace("_us,TASK", "_ns,TASK"), CSV.rstrip()):
        # The first version of libbpf-tools named us, printed ns, and no line end.
        (sync,) = core(tmp_path, (header + row).encode())["sync"]
        assert (sync["ts_ns"], sync["dur_ns"]) == (1_100_000_000, 900_000_000)
    with pytest.raises(_core.CoreError):
        core(tmp_path, row.encode(), source="slower")


@pytest.mark.parametrize(
    ("text", "threshold", "resolution"),
    [
        (BANNER + ROW, "10000000", "1000000000"),
        (BANNER.replace(" slower than 10 ms", "") + ROW, None, "1000000000"),
        (HEADER + ROW, "unknown", "1000000000"),
        (CSV + "2000000,db,7,S,0,0,900000,a\n", "unknown", None),
    ],
)
def test_the_threshold_is_a_fact(
    text: str, threshold: str | None, resolution: str | None, tmp_path: Path
) -> None:
    tables = core(tmp_path, text.encode())
    assert meta(tables, "slower_than_ns") == threshold
    assert meta(tables, "time_resolution_ns") == resolution


def test_reports_say_which_calls_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "x.txt"
    log.write_text(BANNER + ROW)
    trace = tmp_path / "x.pftrace"
    run("convert", str(log), "-o", str(trace))
    for source in (log, trace):
        for reports in ([], ["summary"], ["files", "threads"]):
            said = " ".join(run("report", str(source), *reports).stdout.split())
            assert "only calls that took longer than 10 ms are recorded" in said
            assert "times are known to 1 s" in said
            # Nobody knows which syncs overlapped.
            assert "At least one waited" not in said
    figures = json.loads(run("report", str(log), "summary", "--format", "json").stdout)
    values = {row["metric"]: row["value"] for row in figures["rows"] if row["scope"] == "all"}
    assert values["sync_time_sum"] == 61_220_000
    assert values["sync_wall_time"] is None
    assert values["parallelism"] is None
    log.write_text(HEADER + ROW)
    assert "only calls that took longer than a threshold" in " ".join(
        run("report", str(log)).stdout.split()
    )
    log.write_text(BANNER.replace(" slower than 10 ms", "") + ROW)
    assert "longer than" not in run("report", str(log)).stdout


def test_a_table_without_a_sync_says_so(tmp_path: Path) -> None:
    log = tmp_path / "x.txt"
    log.write_text(BANNER + ROW.replace(" S ", " R "))
    said = fails(3, "report", str(log))
    assert "it has no row of a sync" in said
    assert "ext4slower 1" in said


def test_other_calls_are_counted_by_name(tmp_path: Path) -> None:
    log = tmp_path / "x.txt"
    log.write_text(BANNER + ROW + ROW.replace(" S ", " R ") * 2 + ROW.replace(" S 0 ", " W 8 "))
    [info] = json.loads(run("inspect", str(log), "--format", "json").stdout)["inputs"]
    counts = {other["event"]: other["count"] for other in info["other_events"]}
    assert counts == {"slow_read": 2, "slow_write": 1}
    events = tmp_path / "x.events.jsonl"
    run("convert", str(log), "-o", str(events))
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    assert [line["event"] for line in lines] == [
        "sync_done",
        "slow_read",
        "slow_read",
        "slow_write",
    ]
    assert lines[3]["bytes"] == 8
    # The low-level log gives the same syncs.
    assert rows(core(tmp_path, events.read_bytes())) == rows(core(tmp_path, log.read_bytes()))
