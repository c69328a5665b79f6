"""The core's pairing of writes in a stock kernel's events, against the reference: recordings, and generated logs with all kinds of damage."""

from __future__ import annotations

import json
import random
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.errors import InputError
from syncline.kinds import resolve
from syncline.reading import Reading
from syncline.recordings import Filter
from syncline.write_model import recording
from syncline.write_model.probe_events import _NOT_USED

from tests import once
from tests.coretools import ROOT
from tests.reference import write_events as reference
from tests.test_commands import ok

Row = dict[str, Any]
DEVICES = (266338320, 266338321, 7 << 20)
SEEDS = 150


def low_level(path: Path, folder: Path) -> list[Row]:
    log = folder / "log.events.jsonl"
    Reading().convert([str(path)], str(log))
    return [json.loads(line) for line in log.read_text().splitlines()]


def table(path: Path, folder: Path, **options: Any) -> list[Row]:
    """Returns the core's rows in their order."""
    output = folder / "writes.parquet"
    Reading().convert([str(path)], str(output), to="writes", **options)
    with once.database() as connection:
        rows = connection.read_parquet(str(output), file_row_number=True).order("file_row_number")
        return [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]


def calls_of(rows: list[Row]) -> list[tuple[Any, ...]]:
    columns = ("ts_ns", "dur_ns", "tid", "comm", "dev", "ino", "generation", "path")
    columns += ("offset_bytes", "file_size_bytes", "ret", "dirty_pages", "is_datasync")
    paired = [row for row in rows if row["part"] == "call" and row["unused"] is None]
    return [(_kind(row), *(row[name] for name in columns)) for row in paired]


def _kind(row: Row) -> str:
    if row["kind"] != "write":
        return row["kind"]
    words = [word for word, is_so in (("direct", row["is_direct"]), ("synchronized", row["is_synchronized"])) if is_so]  # fmt: skip
    return "_".join(words) or "cached"


def expected_calls(paired: reference.Paired) -> list[tuple[Any, ...]]:
    calls = []
    for call in paired.calls:
        dev, ino, generation = call.file
        if call.kind == "sync_inodes":
            ino, generation = 0, 0
        place = (dev, ino, generation, reference.short_path(call.entry))
        sizes = (call.offset if call.kind == "write" else 0, call.file_size, call.ret)
        sizes += (call.dirty_pages, call.is_datasync)
        thread = (call.entry["tid"], call.entry["comm"])
        calls.append((call.write_kind, call.entry["ts_ns"], call.duration_ns, *thread, *place, *sizes))  # fmt: skip
    return calls


def same_as_reference(path: Path, folder: Path, **options: Any) -> reference.Paired:
    """Compares the rows of the core. Returns those of the reference."""
    paired = reference.pair(low_level(path, folder))
    rows = table(path, folder, **options)
    assert calls_of(rows) == expected_calls(paired)
    assert Counter(row["unused"] for row in rows if row["unused"] is not None) == paired.unused
    limits = [(row["background_pages"], row["hard_pages"]) for row in rows if row["part"] == "limits"]  # fmt: skip
    assert limits == paired.limits
    # Each event is in a row, or is a part of a synchronized write.
    assert all(row["dur_ns"] is not None for row in rows if row["unused"] in (None, "doubtful") and row["part"] == "call")  # fmt: skip
    return paired


def same_as_used(path: Path, log: list[Row], chosen: Filter) -> reference.Used:
    """Compares what the write model uses. Returns what the reference does."""
    used = reference.used(log, chosen.comm, chosen.path, chosen.device)
    reasons = Counter({_NOT_USED[reason]: number for reason, number in used.unused.items()})
    try:
        found = recording.read(resolve(str(path)), Reading(filter=chosen))
    except InputError as error:
        assert not any(row[2] != "sync" for row in used.writes), error
        return used
    rows = [
        (
            *(one.start_ns, one.duration_ns, one.kind, one.path, one.offset, one.size),
            *(one.dirty_bytes, one.file_size, one.is_datasync),
        )
        for one in found.writes
    ]
    assert rows == used.writes
    assert found.limits_bytes == used.limits_bytes
    said = [re.fullmatch(r"not used: (.*) \(([\d,]+)\)", note) for note in found.notes]
    numbers = {one[1]: int(one[2].replace(",", "")) for one in said if one}
    assert numbers == reasons
    return used


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a guest: writes and syncs of all kinds, and the log of user stacks."""
    folder = tmp_path_factory.mktemp("recording")
    with tarfile.open(ROOT / "tests" / "data" / "writes" / "mixed-events.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "run"


def test_a_recording_has_the_rows_of_the_reference(recorded: Path, tmp_path: Path) -> None:
    paired = same_as_reference(recorded, tmp_path)
    kinds = Counter(call.write_kind for call in paired.calls)
    assert set(kinds) >= {"cached", "synchronized", "direct", "fsync"}
    assert kinds.total() > 20
    log = low_level(recorded, tmp_path)
    assert any(row["source"] == "bpftrace" for row in log)
    for chosen in (Filter(), Filter(comm="python3"), Filter(path="/w/"), Filter(comm="nobody")):
        same_as_used(recorded, log, chosen)


# Each generated log is made of events of a few threads, files and devices, so that calls meet.


class Generator:
    """Text of the ring buffer. Threads call functions one in another; at random something is damaged."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.damage = self.rng.choice((0.0, 0.03, 0.2))
        self.now_us = 1_000_000
        # Equal times are frequent on a coarse clock.
        self.tick_us = self.rng.choice((1, 7, 4000))
        self.open: dict[int, list[tuple[str, int, int, int]]] = {}
        self.lines: list[str] = []

    def add(self, tid: int, event: str) -> None:
        comm = f"w{tid}" if self.rng.random() > self.damage / 4 else "other"
        self.now_us += self.tick_us * self.rng.choice((0, 0, 1, 1, 3))
        stamp = f"{self.now_us // 10**6}.{self.now_us % 10**6:06}"
        self.lines.append(f" {comm}-{tid} [00{tid % 2}] ..... {stamp}: {event}")

    def file(self, ino: int) -> str:
        # Two files of a device, and those of others, have the same name.
        names = {
            1: 'n0="f" n1="/"',
            2: 'n0="f" n1="/" n2="/"',
            3: 'n0="a" n1="b" n2="c" n3="d"',
            4: "",
        }
        return names[ino]

    def enter(self, tid: int) -> None:
        rng, calls = self.rng, self.open.setdefault(tid, [])
        kind = rng.choices(("write", "fsync", "sync_inodes"), (6, 3, 1))[0]
        used = {dev for _, dev, *_ in calls}
        free = [dev for dev in DEVICES if dev not in used]
        dev = rng.choice(free) if free and rng.random() > self.damage else rng.choice(DEVICES)
        ino, flags = rng.randint(1, 4), rng.choice((0, 0, 2, 6, 16, 1 << 17, (1 << 17) | 2))
        if calls and calls[-1][0] == "write" and calls[-1][3] & 6 and rng.random() < 0.8:
            # What a synchronized write does.
            kind, (_, dev, ino, _) = "fsync", calls[-1]
        calls.append((kind, dev, ino, flags))
        if kind == "sync_inodes":
            self.add(tid, f"sync_inodes: (sync_inodes_sb+0x0/0x10) dev={dev}")
            return
        fields = [f"dev={dev}", f"ino={ino}", f"gen={ino + 5}"]
        if kind == "write":
            fields += [f"offset={rng.randint(0, 9) * 512}", f"ki_flags={flags}", f"file_size={rng.randint(0, 99)}"]  # fmt: skip
        if kind == "fsync" and rng.random() < 0.9:
            fields.append(f"datasync={rng.randint(0, 1)}")
        if rng.random() < self.damage / 8:
            del fields[rng.randrange(len(fields))]
        text = " ".join([*fields, self.file(ino)])
        function = "ext4_file_write_iter" if kind == "write" else "ext4_sync_file"
        self.add(tid, f"{kind}_enter: ({function}+0x0/0x10) {text}")

    def leave(self, tid: int, kind: str) -> None:
        rng = self.rng
        if kind == "sync_inodes":
            self.add(tid, "sync_inodes_end: (sync_inodes_one_sb+0x0/0x10 <- sync_inodes_sb)")
            return
        ret = rng.choice((0, 100, 4096, 4096, -5, -529))
        after = f" nr_dirty={rng.randint(-3, 9)} nr_writeback={rng.randint(0, 2)}" if rng.random() > 0.2 else ""  # fmt: skip
        function = "ext4_file_write_iter" if kind == "write" else "ext4_sync_file"
        self.add(tid, f"{kind}_exit: (vfs_write+0x1/0x10 <- {function}) ret={ret}{after}")

    def step(self) -> None:
        rng = self.rng
        tid = rng.randint(1, 4)
        if rng.random() < self.damage / 4:
            self.lines.append(
                rng.choice(("CPU:0 [LOST 7 EVENTS]", "CPU:1 [LOST EVENTS]", "garbage"))
            )
        if rng.random() < 0.1:
            limit = rng.randint(1, 5)
            self.add(
                tid,
                f"global_dirty_state: dirty=10 writeback=0 bg_thresh={limit} thresh={limit * 3} limit=9 dirtied=1 written=1",
            )
        if rng.random() < 0.1:
            self.add(
                tid,
                rng.choice(
                    (
                        "sys_fsync(fd: 3)",
                        "sched_waking: comm=x pid=7 prio=120 target_cpu=001",
                        "foo <-bar",
                    )
                ),
            )
        calls = self.open.get(tid, [])
        if calls and (len(calls) == 3 or rng.random() < 0.6):
            kind, *_ = calls.pop()
            if rng.random() >= self.damage / 2:
                self.leave(tid, kind)
        elif rng.random() < self.damage / 4:
            self.leave(tid, rng.choice(("write", "fsync", "sync_inodes")))
        else:
            self.enter(tid)

    def text(self) -> str:
        for _ in range(self.rng.choice((3, 40, 200))):
            self.step()
        lines = self.lines
        if self.rng.random() < 0.3 and self.now_us < 5_000_000:
            # The buffers of the CPUs one after the other: the reorder window is 5 s.
            lines = sorted(lines, key=lambda line: "[001]" in line)
        return "# tracer: nop\n#\n" + "".join(f"{line}\n" for line in lines)


def generated(folder: Path) -> Iterator[tuple[int, Path]]:
    for seed in range(SEEDS):
        path = folder / "events.txt"
        path.write_text(Generator(seed).text())
        yield seed, path


def test_generated_logs_have_the_rows_of_the_reference(tmp_path: Path) -> None:
    kinds: Counter[str] = Counter()
    unused: Counter[str] = Counter()
    depths = 0
    for seed, path in generated(tmp_path):
        # Without names in reserve, all are forgotten that no open call has.
        options = {"max_idle_name_bytes": 0} if seed % 3 == 0 else {}
        paired = same_as_reference(path, tmp_path, **options)
        kinds.update(call.write_kind for call in paired.calls)
        unused.update(paired.unused)
        depths += sum(
            outer.entry["ts_ns"] < inner.entry["ts_ns"] and inner.returned["ts_ns"] < outer.returned["ts_ns"]
            for outer in paired.calls
            for inner in paired.calls
            if inner.entry["tid"] == outer.entry["tid"] and inner.returned and outer.returned
        )  # fmt: skip
    assert min(kinds[kind] for kind in ("cached", "synchronized", "direct", "direct_synchronized", "fsync", "sync_inodes")) > 100  # fmt: skip
    assert min(unused[why] for why in (reference.LOSS, reference.NO_RETURN, reference.NO_START, reference.DOUBTFUL)) > 50  # fmt: skip
    assert depths > 100


def test_what_is_used_of_generated_logs(tmp_path: Path) -> None:
    unused: Counter[str] = Counter()
    writes: Counter[str] = Counter()
    named_by_inode = 0
    filters: list[Callable[[random.Random], Filter]] = [
        lambda _: Filter(),
        lambda rng: Filter(comm=f"w{rng.randint(1, 4)}"),
        lambda rng: Filter(path=rng.choice(("/f", ".../d/c", "/f (inode 2"))),
        lambda rng: Filter(device=rng.choice(DEVICES)),
        lambda rng: Filter(comm="w1", device=rng.choice(DEVICES)),
    ]
    for seed, path in generated(tmp_path):
        log = low_level(path, tmp_path)
        chosen = filters[seed % len(filters)](random.Random(seed))
        used = same_as_used(path, log, chosen)
        unused.update(used.unused)
        writes.update(row[2] for row in used.writes)
        named_by_inode += sum("(inode" in row[3] for row in used.writes)
    # `late` needs more than the reorder window: it has a test of its own.
    assert set(unused) == set(_NOT_USED) - {"late"}
    assert min(unused.values()) > 30
    assert set(writes) == {"cached", "synchronized", "direct", "direct_synchronized", "sync"}
    assert named_by_inode > 100


def test_a_low_level_log_has_the_rows_of_its_recording(recorded: Path, tmp_path: Path) -> None:
    def rows_of(path: Path) -> list[Row]:
        return table(path, tmp_path)

    for path in (next(path for _, path in generated(tmp_path)), recorded / "trace.dat"):
        log = tmp_path / "copy.events.jsonl"
        Reading().convert([str(path)], str(log))
        assert rows_of(log) == rows_of(path)
        assert rows_of(path)


def line(tid: int, time_us: int, event: str) -> str:
    return f" w-{tid} [000] ..... {time_us / 1e6:.6f}: {event}\n"


def write(tid: int, time_us: int, ino: int = 1) -> str:
    text = f'dev={DEVICES[0]} ino={ino} gen=7 offset=0 ki_flags=0 file_size=0 n0="f{ino}" n1="/" n2="/" n3="/"'
    return line(tid, time_us, f"write_enter: (ext4_file_write_iter+0x0/0x10) {text}")


def end(tid: int, time_us: int, ret: int = 4096) -> str:
    return line(tid, time_us, f"write_exit: (vfs_write+0x1/0x10 <- ext4_file_write_iter) ret={ret}")


HEAD = "# tracer: nop\n#\n"


def test_an_event_that_comes_too_late_is_counted_and_pairs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    second = 10**6
    text = [write(1, second), end(1, second + 10), write(2, second + 20)]
    # The log is read in pieces, and events wait until a piece has later ones.
    filler = [line(9, 8 * second + n, "foo <-bar") for n in range(200_000)]
    text += [write(3, 8 * second), *filler, end(3, 9 * second)]
    text += [write(4, second + 5), end(4, second + 15), end(2, 9 * second + 1)]
    path.write_text(HEAD + "".join(text) + write(5, 20 * second) + end(5, 20 * second + 5))
    found = recording.read(resolve(str(path)), Reading())
    starts = [one.start_ns // 1000 for one in found.writes]
    assert starts == [second, 8 * second, 20 * second]
    # What else was open then may have been paired with others.
    late, loss, no_start = (_NOT_USED[why] for why in ("late", "loss", "no start"))
    assert sorted(found.notes) == [
        f"not used: {loss} (1)",
        f"not used: {no_start} (1)",
        f"not used: {late} (2)",
    ]
    # With a larger window, it is the same as if the log had been in order.
    found = recording.read(resolve(str(path)), Reading(window_ns=10**11))
    assert [one.start_ns // 1000 for one in found.writes] == [
        *(second, second + 5, second + 20, 8 * second, 20 * second),
    ]
    assert found.notes == []


def test_input_from_a_pipe(tmp_path: Path) -> None:
    machine = ROOT / "tests" / "data" / "writes" / "machine.toml"
    arguments = ("--parameters", machine, "--each", "--format", "csv")
    path = tmp_path / "events.txt"
    path.write_text(HEAD + write(1, 10) + end(1, 20) + write(1, 30) + end(1, 50))
    for recorded in (path, ROOT / "tests" / "data" / "writes" / "mixed.log"):
        assert ok("model", "predict", "-", *arguments, stdin=recorded.read_bytes()) == ok("model", "predict", recorded, *arguments)  # fmt: skip


def test_a_recording_without_plain_writes_says_of_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    path.write_text(HEAD + end(1, 20) + line(1, 30, "sys_fsync(fd: 3)"))
    with pytest.raises(
        InputError,
        match="no call of write is recorded in this log, whose format is ftrace",
    ):
        recording.read(resolve(str(path)), Reading())


def test_the_table_of_writes_is_no_output_of_a_command() -> None:
    assert "writes" not in dict(_core.FORMATS)
