"""The tables of biosnoop: recordings against the same requests in the ring buffer, damaged tables, and what is said of them."""

from __future__ import annotations

import json
import random
import re
import textwrap
from pathlib import Path

import pytest
from syncline import _core

from tests.coretools import Rows, core
from tests.coretools import tables as read_tables
from tests.reference import biosnoop
from tests.reference.biosnoop import DAY, MS, SECOND
from tests.test_commands import fails, run

DATA = Path(__file__).parent / "data/biosnoop"
RECORDINGS = sorted(path.name for path in DATA.glob("*.txt"))
HEADER = "TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   LAT(ms)\n"
ROW = "1.000000    postgres       2211    vdb     WS   266240     65536     7.423\n"
MILLIS = "TIME(ms)     DISK ID        COMM             PID    LAT(ms)\n             MAJOR MINOR\n"
COLUMNS = (
    "ts_ns", "dur_ns", "queue_ns", "device_ns", "dev", "sector", "bytes", "direction", "rwbs", "pid", "comm",
)  # fmt: skip
# Names of the disks in the guest, and their numbers.
DISKS = {"vdb": "254,16", "vdc": "254,32"}


def rows(tables: dict[str, Rows]) -> list[tuple[object, ...]]:
    return sorted((tuple(row[c] for c in COLUMNS) for row in tables["bio"]), key=str)


def values(requests: list[biosnoop.Request]) -> list[tuple[object, ...]]:
    return sorted((tuple(vars(request).values()) for request in requests), key=str)


def expected(text: str) -> list[tuple[object, ...]]:
    return values(biosnoop.read(text))


def losses(tables: dict[str, Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in tables["loss"] if row["severity"] == "loss"}


def meta(tables: dict[str, Rows], key: str) -> str | None:
    return next((row["value"] for row in tables["meta"] if row["key"] == key), None)


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_gives_the_requests_of_the_second_reader(name: str, tmp_path: Path) -> None:
    text = (DATA / name).read_text()
    if name == "bcc-by-source.txt":
        # The second reader does not know columns that run into each other.
        text = text.replace("10485761500.50", "1048576 1500.50")
    tables = core(tmp_path, (DATA / name).read_bytes())
    assert rows(tables) == expected(text)
    assert losses(tables) == ({"lost_by_tracer": 3} if "QP" in name else {})
    assert all(row["is_request"] for row in tables["bio"])
    for column in ("sync_id", "origin", "tid", "error", "below", "ino", "confidence"):
        assert {row[column] for row in tables["bio"]} == {None}, column
    assert not tables["sync"]
    assert meta(tables, "syncs_recorded") == "no"


@pytest.mark.parametrize("seed", range(40))
def test_a_generated_table_gives_its_requests(seed: int, tmp_path: Path) -> None:
    text, requests = biosnoop.generated(random.Random(seed))
    if "TIMESTAMP" not in text:
        # The second reader does not know that midnight has passed.
        assert expected(text) == values(requests)
    tables = core(tmp_path, text.encode())
    assert rows(tables) == values(requests)
    lost = 3 * len(re.findall(r"ost 3 (?:samples|events)(?: on CPU #1)?$", text, re.MULTILINE))
    assert losses(tables) == ({"lost_by_tracer": lost} if lost else {})


def in_ring(name: str) -> list[tuple[str, int, int, float, float]]:
    """Device, sector, bytes, issue and completion of each request that the ring buffer has with both ends."""
    issued: dict[tuple[str, str, int], tuple[float, int]] = {}
    found = []
    event = re.compile(
        r" (\d+\.\d+): block_rq_(issue|complete): (\S+) (\S+) (?:(\d+) )?\(\) (\d+) \+ (\d+)"
    )
    for line in (DATA / name).with_suffix(".events").read_text().splitlines():
        if not (parts := event.search(line)):
            continue
        at, what, dev, letters, _, sector, sectors = parts.groups()
        key = (dev, letters, int(sector))
        if what == "issue":
            issued[key] = (float(at), int(sectors))
        elif key in issued:
            begin, count = issued.pop(key)
            found.append((dev, int(sector), count * 512, begin, float(at)))
    return found


@pytest.mark.parametrize("name", ["libbpf.txt", "libbpf-Q.txt", "libbpf-t.txt"])
def test_each_row_is_a_request_of_the_ring_buffer(name: str, tmp_path: Path) -> None:
    """With the device, the place, the size and the latency that the kernel's own events have at the same time."""
    tables = core(tmp_path, (DATA / name).read_bytes())
    found = [
        (DISKS[row["dev"]], row["sector"], row["bytes"], row["device_ns"] / SECOND)
        for row in tables["bio"]
        if row["dev"] in DISKS and row["sector"] is not None
    ]
    assert len(found) > 15
    truth = in_ring(name)
    for dev, sector, size, took in found:
        # A tracer runs before the other at both ends, and the emulated CPU may be stopped between them.
        near = [
            one
            for one in truth
            if one[:3] == (dev, sector, size) and abs(one[4] - one[3] - took) < 0.005
        ]
        assert near, (dev, sector, size, took)
        truth.remove(near[0])


@pytest.mark.parametrize("name", ["libbpf.txt", "libbpf-Q.txt", "libbpf-t.txt", "bpftrace.txt"])
def test_a_recording_has_what_the_program_did(name: str, tmp_path: Path) -> None:
    """Each direct write and read of the program is a request of its process, which took no longer than its call."""
    tables = core(tmp_path, (DATA / name).read_bytes())
    calls = [
        line.split("\t")
        for line in (DATA / name).with_suffix(".truth").read_text().splitlines()
        if "\tdirect\t" in line
    ]
    names = {"wal": "vdb", "a b vdb R": "vdc"}
    for what, direction in (("pwrite", "write"), ("pread", "read")):
        for thread, disk in names.items():
            own = [call for call in calls if call[2] == thread and call[4] == what]
            pid = int(own[0][0])
            # libbpf-tools print 14 characters of a name, and the kernel keeps the name of the thread.
            of_program = [
                row
                for row in tables["bio"]
                if row["pid"] == pid and row["dev"] in (disk, DISKS[disk])
                and (row["direction"] == "unknown" or (row["direction"] == direction and row["bytes"] == 16384))
            ]  # fmt: skip
            assert len(of_program) >= len(own)
            slowest = max(int(call[7]) - int(call[6]) for call in own)
            if name != "bpftrace.txt":
                assert sorted(row["dur_ns"] for row in of_program)[len(own) - 1] <= slowest + MS


def test_a_trace_holds_the_requests_of_its_table(tmp_path: Path) -> None:
    for name in RECORDINGS:
        trace, through = tmp_path / f"{name}.pftrace", tmp_path / f"{name}.tables"
        events = tmp_path / f"{name}.events.jsonl"
        run("convert", str(DATA / name), "-o", str(trace))
        run("convert", str(trace), "-o", f"{through}/")
        run("convert", str(DATA / name), "-o", str(events))
        direct = rows(core(tmp_path, (DATA / name).read_bytes()))
        assert rows(read_tables(through)) == direct
        assert rows(core(tmp_path, events.read_bytes())) == direct


@pytest.mark.parametrize("name", ["libbpf-Q.txt", "bpftrace.txt", "bcc-by-source.txt"])
def test_both_engines_show_the_same(name: str, tmp_path: Path) -> None:
    trace = tmp_path / "x.pftrace"
    run("convert", str(DATA / name), "-o", str(trace))
    shown = []
    for source in (DATA / name, trace):
        said = json.loads(run("report", str(source), "device", "--format", "json").stdout)
        shown.append(said["rows"])
    assert shown[0] == shown[1]
    assert {row["dev"] for row in shown[0]} <= {"vda", "vdb", "vdc", "254,0", "254,16", "254,32", "xvda1", "nvme0n1p2"}  # fmt: skip


def test_a_table_that_is_cut_anywhere_gives_no_wrong_request(tmp_path: Path) -> None:
    text = (HEADER + ROW * 2 + ROW.replace("7.423", "12.000")).encode()
    whole = rows(core(tmp_path, text))
    for end in range(1, len(text)):
        try:
            found = rows(core(tmp_path, text[:end]))
        except _core.CoreError as error:
            assert error.args[2] == "input"
            continue
        assert set(found) <= set(whole), end


TABLE = HEADER + ROW + ROW.replace("1.000000", "2.000000").replace("postgres", "a b vdb R")


@pytest.mark.parametrize(
    ("pasted", "unparsed"),
    [
        (textwrap.indent(TABLE, "    "), 0),
        (textwrap.indent(TABLE, "> "), 0),
        (f"$ sudo biosnoop\n{TABLE}^C$\n", 2),
        (f"It is slow:\n\n```\n{TABLE}```\nWhy?\n", 4),
        ("".join(f"\x1b[32m{line}\x1b[0m\n" for line in TABLE.splitlines()), 0),
        (TABLE.replace(" ", "\u00a0"), 0),
        (TABLE.replace("\n", "\r\n"), 0),
        ("".join(f"{n:6}\t{line}\n" for n, line in enumerate(TABLE.splitlines(), 1)), 0),
        (textwrap.indent(TABLE, "Nov 30 11:00:00 db1 biosnoop[77]: "), 0),
        # Its header is scrolled off.
        (TABLE.removeprefix(HEADER), 0),
    ],
)  # fmt: skip
def test_a_pasted_table_gives_its_requests(pasted: str, unparsed: int, tmp_path: Path) -> None:
    tables = core(tmp_path, pasted.encode())
    assert rows(tables) == expected(TABLE)
    assert losses(tables) == ({"unparsed_line": unparsed} if unparsed else {})


def test_names_that_look_like_something_else_are_names(tmp_path: Path) -> None:
    names = [
        "1 vdb W 8 4096",
        "TIME(s) COMM",
        "lost 3 events",
        "=HYPERLINK(1)",
        "\t",
        "<b>",
        "é\u202ex",
        "",
    ]
    text = HEADER + "".join(ROW.replace("postgres      ", f"{name:14}") for name in names)
    tables = core(tmp_path, text.encode())
    assert sorted(row["comm"] or "" for row in tables["bio"]) == sorted(
        name.strip() for name in names
    )
    assert losses(tables) == {}


@pytest.mark.parametrize("disk", ['x<y>&"z', "vdb;rm", "v" * 33, "vdb\x00", "../vdb"])
def test_a_disk_that_no_kernel_names_is_counted(disk: str, tmp_path: Path) -> None:
    tables = core(tmp_path, (HEADER + ROW + ROW.replace("vdb", disk)).encode())
    assert {row["dev"] for row in tables["bio"]} == {"vdb"}
    assert losses(tables) == {"unparsed_line": 1}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (ROW.replace("7.423", "7,423"), "has a comma"),
        (ROW.replace("7.423", "7.4"), "it is no row"),
        (ROW.replace(" WS ", " ZS "), "it is no row"),
        (ROW.replace("266240", "26x240"), "it is no row"),
        (ROW.replace("1.000000", "23:18:13.754"), "another clock"),
        ("06:35:01 postgres       2211   S 0       0          61.22 wal\n", "it is no row"),
        ("2812         254   16       kworker/0:0      9            5\n", "it is no row"),
    ],
)
def test_a_line_that_is_not_used_is_counted(line: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(HEADER + line + ROW)
    tables = core(tmp_path, path.read_bytes())
    assert losses(tables) == {"unparsed_line": 1}
    assert [row[:2] for row in rows(tables)] == [(DAY + SECOND - 7_423_000, 7_423_000)]
    inspected = run("inspect", str(path))
    said = inspected.stderr + inspected.stdout
    assert "x.txt:2: " in said
    assert why in said


def test_rows_of_one_disk_by_name_and_by_number_are_not_joined(tmp_path: Path) -> None:
    """One request, by libbpf-tools and by bpftrace. Only a number says which disk it is, so both rows stay."""
    by_name, by_number = tmp_path / "libbpf.txt", tmp_path / "bpftrace.txt"
    by_name.write_text(HEADER + ROW)
    by_number.write_text(MILLIS + "1000         254   16     postgres         2211         7\n")
    logs = [str(by_name), str(by_number)]
    assert "are not on one clock" in fails(3, "convert", *logs, "-o", f"{tmp_path / 'refused'}/")
    run("convert", *logs, "--offset", f"{by_number}=0", "-o", f"{tmp_path / 'both'}/")
    both = read_tables(tmp_path / "both")
    assert [row[:5] for row in rows(both)] == [
        (DAY + SECOND - 7_423_000, 7_423_000, None, 7_423_000, "vdb"),
        (DAY + SECOND - 7 * MS, 7 * MS, None, None, "254,16"),
    ]
    assert losses(both) == {}


def test_times_of_another_table_are_not_those_of_the_first(tmp_path: Path) -> None:
    tables = core(tmp_path, (HEADER + ROW + HEADER + ROW * 2).encode())
    assert len(tables["bio"]) == 1
    assert losses(tables) == {"unparsed_line": 2}
    of_day = ROW.replace("1.000000", "23:18:13.754")
    header = HEADER.replace("TIME(s)", "TIMESTAMP")
    tables = core(tmp_path, (header + of_day + header + of_day * 2).encode())
    assert len(tables["bio"]) == 3
    assert losses(tables) == {}


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("libbpf.txt", ("relative", "1000", "1000")),
        ("libbpf-t.txt", ("time_of_day", "1000000", "1000")),
        ("bcc-by-source.txt", ("relative", "1000", "10000")),
        ("bpftrace.txt", ("relative", "1000000", "1000000")),
    ],
)
def test_the_units_are_facts(name: str, facts: tuple[str, str, str], tmp_path: Path) -> None:
    tables = core(tmp_path, (DATA / name).read_bytes())
    keys = ("clock", "time_resolution_ns", "latency_resolution_ns")
    assert tuple(meta(tables, key) for key in keys) == facts
    said = " ".join(run("report", str(DATA / name)).stdout.split())
    assert ("times are known to 1 ms" in said) == (facts[1] == "1000000")
    assert ("latencies are rounded down to 1 ms" in said) == (facts[2] == "1000000")


def test_flags_that_bcc_does_not_print_are_not_known(tmp_path: Path) -> None:
    said = run("report", str(DATA / "bcc-by-source.txt"), "device", "--format", "json").stdout
    parts = {row["part"] for row in json.loads(said)["rows"]}
    assert parts == {"all", "thread", "read", "unknown"}
