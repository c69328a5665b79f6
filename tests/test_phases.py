"""Phases of requests: against the reference implementation, in recordings and in made-up logs, and in traces."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.inputs import Reading, opened
from syncline.report.run import run_query, run_report

from tests import sqltools
from tests.coretools import DATA, RECORDINGS, ROOT, Rows, tables
from tests.reference import phases

ALL_DATA = ROOT / "tests" / "data"
# Each kind of recording: probes with and without the patch, the patch, the block layer, perf, bpftrace.
OTHERS = [
    *("dynamic-events/btrfs-both.txt.gz", "dynamic-events/btrfs.txt.gz"),
    *("dynamic-events/ext4-both.txt.gz", "dynamic-events/ext4.dat.gz"),
    *("dynamic-events/ext4.report.txt.gz", "dynamic-events/ext4.txt.gz"),
    *("dynamic-events/f2fs-both.txt.gz", "dynamic-events/f2fs.txt.gz"),
    *("dynamic-events/xfs-both.txt.gz", "dynamic-events/xfs.txt.gz"),
    *("ftrace/parallel4.report.txt.gz", "ftrace/sqlite_wal_full.trace.txt.gz"),
    *("ftrace/uring.report.txt.gz", "several-recorders/ring.dat", "tracecmd/small4.dat"),
    *("perf/stacks.txt.gz", "bpf/stock-0.27.log.gz", "bpf/stock-tracepoints.log.gz"),
    *("bpf/patched.log.gz", "blktrace/small4.blktrace.0"),
]
INPUTS = {name: ALL_DATA / name for name in OTHERS} | {name: DATA / name for name in RECORDINGS}

Phases = dict[int, list[phases.Phase]]


def converted(source: Path, folder: Path) -> tuple[dict[str, Rows], Rows]:
    """The tables of an input, and its events in the order of time."""
    _core.convert([str(source)], f"{folder}/tables/")
    _core.convert([str(source)], f"{folder}/log.events.jsonl")
    log = [json.loads(line) for line in (folder / "log.events.jsonl").open()]
    events = [event for event in log if "ts_ns" in event]
    return tables(folder / "tables"), sorted(events, key=lambda event: event["ts_ns"])


def user(row: dict[str, Any]) -> phases.User | None:
    if row["cpu_tid"] is None:
        return None
    return row["cpu_tid"], row["cpu_comm"], row["cpu_confidence"]


def by_request(rows: Rows) -> Phases:
    found: Phases = {}
    for row in sorted(rows, key=lambda row: (row["sync_id"], row["number"])):
        found.setdefault(row["sync_id"], []).append(
            (row["phase"], row["ts_ns"], row["dur_ns"], user(row))
        )
        assert row["number"] == len(found[row["sync_id"]])
    return found


def assert_sums(of_run: dict[str, Rows]) -> None:
    """The phases of each complete request add up to its length, and do not overlap. Of the others, only those have phases whose start and end
    are known, and only the entry of their call is not."""
    found = by_request(of_run["phase"])
    lengths = {
        row["sync_id"]: row["ts_ns"] + row["dur_ns"] - row["start_ns"]
        for row in of_run["sync"]
        if row["start_ns"] is not None and row["dur_ns"] is not None
    }
    sums = {number: sum(part[2] for part in parts) for number, parts in found.items()}
    calls = {row["sync_id"] for row in of_run["sync"] if row["incomplete"] == "call"}
    assert {number: length for number, length in sums.items() if number not in calls} == {
        number: length for number, length in lengths.items() if number not in calls
    }
    assert sums.keys() <= lengths.keys() | calls
    for parts in found.values():
        assert parts[-1][0] == "residue"
        for before, after in itertools.pairwise(parts[:-1]):
            assert before[1] is not None
            assert after[1] is not None
            assert before[1] + before[2] <= after[1]
            assert after[2] > 0


@pytest.mark.parametrize("name", INPUTS)
def test_phases_of_recordings_are_those_of_the_reference(name: str, tmp_path: Path) -> None:
    of_run, log = converted(INPUTS[name], tmp_path)
    assert_sums(of_run)
    assert by_request(of_run["phase"]) == phases.of_tables(of_run, log)


def test_without_states_no_cause_takes_the_place_of_a_wait_for_a_cpu(tmp_path: Path) -> None:
    """The same recording with and without the events of the scheduler: time that only these distinguish has no name without them."""
    text = gzip.decompress((ALL_DATA / "dynamic-events/ext4.report.txt.gz").read_bytes())
    lines = text.splitlines(keepends=True)
    stripped = b"".join(line for line in lines if b": sched_" not in line)
    assert len(stripped) < len(text) / 1.5
    of_run: list[dict[int, Counter[str]]] = []
    for number, log in enumerate((text, stripped)):
        (source := tmp_path / f"{number}.txt").write_bytes(log)
        _core.convert([str(source)], f"{tmp_path}/{number}/")
        sums: dict[int, Counter[str]] = {}
        for row in tables(tmp_path / str(number))["phase"]:
            sums.setdefault(row["sync_id"], Counter())[row["phase"]] += row["dur_ns"]
        of_run.append(sums)
    whole, part = of_run
    assert whole.keys() == part.keys()
    assert sum(phases_of["cpu wait"] for phases_of in whole.values()) > 10**6
    assert (
        sum(
            phases_of["earlier writeback"] + phases_of["completion"] for phases_of in whole.values()
        )
        > 0
    )
    for sync_id, known in whole.items():
        # What the journal and the device did meanwhile is a fact without them, too.
        for phase in ("earlier writeback", "commit wait"):
            assert part[sync_id][phase] <= known[phase], (sync_id, phase)
        assert part[sync_id]["cpu wait"] == part[sync_id]["completion"] == 0


def test_a_wait_for_a_cpu_is_null_where_the_recorder_followed_nobody(tmp_path: Path) -> None:
    """The same recording with the events of the scheduler from its middle on: a thread is followed only from then on, or never."""
    text = gzip.decompress((ALL_DATA / "dynamic-events/ext4.report.txt.gz").read_bytes())
    lines = text.splitlines(keepends=True)
    times = [int(found[1]) for line in lines if (found := re.search(rb"(\d{10,}): ", line))]
    middle = (times[0] + times[-1]) / 2

    def is_left_out(line: bytes) -> bool:
        found = re.search(rb"(\d{10,}): sched_", line)
        return found is not None and int(found[1]) < middle

    rows: list[dict[int, Any]] = []
    for number, keeps in enumerate((lines, [line for line in lines if not is_left_out(line)])):
        (source := tmp_path / f"{number}.txt").write_bytes(b"".join(keeps))
        _core.convert([str(source)], f"{tmp_path}/{number}/")
        rows.append({row["sync_id"]: row for row in tables(tmp_path / str(number))["sync"]})
    whole, part = rows
    before = {number for number, row in whole.items() if row["ts_ns"] + row["dur_ns"] < middle}
    after = {number for number, row in whole.items() if row["ts_ns"] > middle}
    assert len(before) > 5
    assert len(after) > 5
    assert all(row["cpu_wait_ns"] is not None for row in whole.values())
    assert all(part[number]["cpu_wait_ns"] is None for number in before)
    assert all(part[number]["cpu_wait_ns"] == whole[number]["cpu_wait_ns"] for number in after)
    with opened(f"{tmp_path}/1", Reading()) as engine:
        found = run_report(engine, "phases").as_dicts()
    unseen = [re.findall(r"cpu wait of (\d+) requests", row["not_recorded"] or "") for row in found]
    assert sum(int(count) for counts in unseen for count in counts) >= len(before)


def every_recording() -> list[str]:
    """All other recordings of tests/data. Of blktrace, the first file stands for all of its CPUs. Traces, and recordings of known truth and
    of queue depths, have tests of their own."""
    # The write model has tables of writes and parameters of machines, which are no logs.
    others = {
        ".truth",
        ".md",
        ".py",
        ".sh",
        ".bt",
        ".json",
        ".jsonl",
        ".xz",
        ".csv",
        ".tsv",
        ".toml",
        "",
    }
    found = []
    for path in sorted(path for path in ALL_DATA.rglob("*") if path.is_file()):
        name = str(path.relative_to(ALL_DATA))
        is_more = path.suffix in (".1", ".2", ".3") or path.parent.name == "run"
        is_test = path.suffix in others or path.name in ("mountinfo", "truth.json")
        if not is_test and not is_more and not name.endswith(".pftrace.gz"):
            found.append(name)
    runs = [str(path.parent.relative_to(ALL_DATA)) for path in ALL_DATA.rglob("manifest.json")]
    of_reference = {str(path.relative_to(ALL_DATA)) for path in INPUTS.values()}
    return [name for name in (*found, *runs) if name not in of_reference]


def test_the_phases_of_every_recording_add_up(tmp_path: Path) -> None:
    # Texts of other tools are left out: tests/test_cases.py says what is said of each.
    said = [
        line.split("\t") for line in (ALL_DATA / "pasted" / "said.tsv").read_text().splitlines()
    ]
    refused = {f"pasted/{row[1].split()[-1]}" for row in said if len(row) > 2 and row[2] == "3"}
    # Texts that are no recordings, and are refused by name.
    refused |= {f"unread/{file.name}" for file in (ALL_DATA / "unread").glob("*.txt")}
    refused |= {"function-graph/no-time.txt"}
    with_phases = 0
    for number, name in enumerate(every_recording()):
        folder = f"{tmp_path}/{number}/"
        try:
            Reading().convert([str(ALL_DATA / name)], folder)
        except _core.CoreError as error:
            # Logs of what is no sync, for tests of formats.
            assert "none of its" in str(error) or name in refused, name
            continue
        of_run = tables(Path(folder))
        assert_sums(of_run)
        with_phases += bool(of_run["phase"])
    assert with_phases >= 20


# A log of dynamic events, made up so that what happens at once is more than in any recording.

SECTOR = 4096
STEPS = ("jbd2_commit_locking", "jbd2_commit_flushing", "jbd2_commit_logging")
DEV = 254 << 20


class Machine:
    """Three threads that sync, a journal and a device, with dice."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.lines: list[str] = []
        self.now = 1_000_000
        self.flying: list[tuple[int, int]] = []
        self.filled = 0
        self.transaction = 7
        self.step = -1

    def event(self, tid: int, text: str, comm: str = "db", *, may_be_at_once: bool = False) -> None:
        self.now += self.dice.choice((0 if may_be_at_once else 1, 1, 7, 40, 300))
        seconds, us = divmod(self.now, 1_000_000)
        self.lines.append(f"{comm:>16}-{tid:<7} [000] .....  {seconds}.{us:06}: {text}")

    def submit(self, tid: int) -> None:
        self.filled += 1
        bio, sector = 0xFF00 + 64 * self.filled, SECTOR + 8 * self.filled
        self.event(
            tid,
            f"bio_add_folio: (f+0x4/0x9) bio=0x{bio:x} dev={DEV} ino={tid} index=1 len=4096 off=0",
        )
        self.event(
            tid,
            f"bio: (f+0x4/0x9) bio=0x{bio:x} dev={DEV} sector={sector} bytes=4096 opf=2049"
            ' end_io="ext4_end_bio+0x0/0x131"',
        )
        self.flying.append((bio, sector))

    def device(self) -> None:
        bio, sector = self.dice.choice(self.flying)
        if self.dice.random() < 0.4:
            self.event(0, f"block_rq_issue: 254,0 WS 4096 () {sector} + 8 [db]", "<idle>")
            return
        self.flying.remove((bio, sector))
        self.event(
            0, f"bio_end: (f+0x4/0x9) bio=0x{bio:x} status=0 remaining=1 private=0x0", "<idle>"
        )

    def journal(self) -> None:
        names = ("jbd2_start_commit", *STEPS, "jbd2_end_commit")
        self.step += self.dice.choice((1, 1, 1, 2)) if 0 <= self.step < 3 else 1
        data = f"dev 254,0 transaction {self.transaction} sync 0"
        self.event(
            99, f"{names[self.step]}: {data}" + (" head 2" if self.step == 4 else ""), "jbd2"
        )
        if self.step == 4:
            self.step, self.transaction = -1, self.transaction + 1

    def state(self, tid: int) -> None:
        kind = self.dice.choice(("sleep", "preempted", "wake", "run", "run"))
        if kind == "wake":
            self.event(0, f"sched_waking: comm=db pid={tid} prio=120 target_cpu=000", "<idle>")
            return
        ends = {"sleep": (tid, "D", 0), "preempted": (tid, "R+", 0), "run": (0, "R", tid)}[kind]
        self.event(
            tid,
            f"sched_switch: prev_comm=a prev_pid={ends[0]} prev_prio=120 prev_state={ends[1]} ==>"
            f" next_comm=b next_pid={ends[2]} next_prio=120",
        )

    def request(self, tid: int, steps: int) -> list[str]:
        """The names of the events that begin and end on the thread, in an order in which they may come."""
        names = ("filemap_wait", "folio_wait", "wait_commit", "flush", "fc_commit", "contention_")
        open_, found = [], []
        for _ in range(steps):
            if open_ and self.dice.random() < 0.5:
                found.append(open_.pop(self.dice.choice((-1, -1, 0))) + "_end")
            else:
                open_.append(self.dice.choice(names))
                found.append(open_[-1])
        return found + [name + "_end" for name in reversed(open_)]

    def wait(self, tid: int, name: str) -> None:
        if name.startswith("contention_"):
            kind = "end" if name.endswith("_end") else "begin"
            self.event(tid, f"contention_{kind}: lock_addr=0xff00 flags=MUTEX")
            return
        field = (
            f" tid={self.transaction + self.dice.choice((0, 0, 1))}"
            if name == "wait_commit"
            else ""
        )
        self.event(tid, f"{name}: (f+0x4/0x9){field}", may_be_at_once=True)

    def log(self) -> str:
        todo: dict[int, list[str]] = {}
        self.state(0)
        for _ in range(900):
            tid = self.dice.choice((11, 12, 13))
            kind = self.dice.choice(("sync", "sync", "bio", "device", "device", "journal", "state"))
            if kind == "sync" and tid not in todo:
                file = f'dev={DEV} ino={tid} gen=1 start=0 end=9 datasync=0 fs="ext4" n0="f" n1="/"'
                self.event(tid, f"fsync_enter: (ext4_sync_file+0x4/0x90) {file}")
                todo[tid] = self.request(tid, self.dice.randrange(12))
            elif kind == "sync" and todo[tid]:
                self.wait(tid, todo[tid].pop(0))
            elif kind == "sync":
                del todo[tid]
                self.event(tid, "fsync_exit: (x+0x4/0x9 <- ext4_sync_file) ret=0")
            elif kind == "bio" and self.dice.random() < 0.5:
                self.submit(tid)
            elif kind == "device" and self.flying:
                self.device()
            elif kind == "journal":
                self.journal()
            elif kind == "state":
                self.state(tid)
        return "# tracer: nop\n#\n" + "\n".join(self.lines) + "\n"


SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_phases_of_made_up_logs_are_those_of_the_reference(seed: int, tmp_path: Path) -> None:
    log = tmp_path / "made.txt"
    log.write_text(Machine(seed).log())
    of_run, events = converted(log, tmp_path)
    assert_sums(of_run)
    found = by_request(of_run["phase"])
    assert len(found) > 5
    assert found == phases.of_tables(of_run, events)


def test_made_up_logs_have_every_phase(tmp_path: Path) -> None:
    found: set[str] = set()
    for seed in SEEDS:
        log = tmp_path / f"{seed}.txt"
        log.write_text(Machine(seed).log())
        _core.convert([str(log)], f"{tmp_path}/{seed}/")
        found |= {row["phase"] for row in tables(tmp_path / str(seed))["phase"]}
    assert found >= {
        *("cpu wait", "lock wait", "flush", "commit wait", "earlier commit", "commit start"),
        *("commit locking", "commit flushing", "commit logging", "fast commit wait", "queue"),
        *("device", "writeback", "submit", "completion", "earlier writeback", "before submit"),
        *("after completion", "residue"),
    }


def without_states(log: str) -> str:
    return "".join(line for line in log.splitlines(keepends=True) if ": sched_" not in line)


@pytest.mark.parametrize("has_states", [True, False], ids=["states", "no states"])
@pytest.mark.parametrize("source", [INPUTS["dynamic-events/ext4.report.txt.gz"], *SEEDS[:4]], ids=str)  # fmt: skip
def test_a_trace_has_the_same_phases(source: Path | int, has_states: bool, tmp_path: Path) -> None:
    text = Machine(source).log() if isinstance(source, int) else gzip.decompress(source.read_bytes()).decode()  # fmt: skip
    source = tmp_path / "log.txt"
    source.write_text(text if has_states else without_states(text))
    _core.convert([str(source)], f"{tmp_path}/tables/")
    _core.convert([str(source)], f"{tmp_path}/out.pftrace")
    sql = "SELECT * FROM syncline_phase ORDER BY sync_id, number"
    # No two slices of a thread cross, and the residue has none but inside of waits: where states are known, it is never there.
    slices = "SELECT COUNT(*), SUM(name = 'residue') FROM slice WHERE category = 'syncline.phase'"
    with (
        opened(f"{tmp_path}/out.pftrace", Reading(), engine="embedded") as trace,
        opened(f"{tmp_path}/out.pftrace", Reading(), engine="duckdb") as read_back,
        opened(f"{tmp_path}/tables", Reading()) as columns,
    ):
        expected = run_query(columns, sql).rows
        assert run_query(trace, sql).rows == expected
        assert run_query(read_back, sql).rows == expected
        report = run_report(columns, "phases").rows
        assert run_report(trace, "phases").rows == report
        assert run_report(read_back, "phases").rows == report
        count, residues = run_query(trace, slices).rows[0]
        assert count > 0
        assert residues == 0 or not has_states


def test_the_requests_of_a_call_are_of_it(tmp_path: Path) -> None:
    """`sync` goes over two pseudo file systems, and twice over ext4. The second time it waits for a flush from 350 to 380."""
    run = sqltools.Run()
    whole = run.add(100, 50, op="sync", fs=None, dev="0,1", call=False, path=None)["sync_id"]
    part = {"call": False, "call_sync_id": whole, "path": None}
    run.add(160, 10, fs=None, dev="0,23", **part)
    run.add(200, 50, fs="ext4", dev="8,0", flush_ns=0, journal_ns=0, **part)
    last = run.add(300, 100, fs="ext4", dev="8,0", flush_ns=30, journal_ns=0, **part)["sync_id"]
    wait = {"sync_id": last, "number": 1, "wait": "flush", "confidence": "exact"}
    run.wait.append(wait | {"ts_ns": 350, "dur_ns": 30})
    # btrfs has no device of its own, and is no pseudo file system.
    run.add(500, 50, op="fsync", fs="btrfs", dev="0,40", call=False)
    tables = sqltools.write_parquet(run, tmp_path / "tables")
    trace = sqltools.write_trace(run, tmp_path / "t.pftrace")
    for path, engine in ((tables, "duckdb"), (trace, "embedded")):
        with opened(str(path), Reading(), engine=engine) as opened_engine:
            rows = run_report(opened_engine, "phases").as_dicts()
            durable = run_report(opened_engine, "durability").as_dicts()
        assert {(row["op"], row["fs"], row["dev"], row["syncs"]) for row in rows} == {
            ("sync", None, None, 2),
            ("sync", "ext4", "8,0", 2),
            ("fsync", "btrfs", "0,40", 1),
        }
        # One call, and its first pass over ext4 is no verdict of its own.
        of_ext4 = [row for row in durable if row["fs"] == "ext4"]
        assert [(row["verdict"], row["op"], row["syncs"]) for row in of_ext4] == [
            ("flush only", "sync", 1)
        ]


def test_phases_that_were_not_recorded_are_named(tmp_path: Path) -> None:
    def unseen(source: Path) -> set[str | None]:
        _core.convert([str(source)], f"{tmp_path}/{source.stem}/")
        with opened(f"{tmp_path}/{source.stem}", Reading()) as engine:
            table = run_report(engine, "phases")
        at = table.columns.index("not_recorded")
        return {row[at] for row in table.rows} - {None}

    thesis = "cpu wait, lock wait, device, earlier writeback, commit wait, flush"
    assert unseen(DATA / "small4.log") == {thesis}
    # The recorder saw the scheduler, the block layer and the waits, and no lock that was contended.
    assert unseen(ALL_DATA / "dynamic-events" / "ext4.dat.gz") == {"lock wait"}
