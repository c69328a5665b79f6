"""Which synchronized writes and syncs wait for a commit of the file system, and what the model charges for it."""

from __future__ import annotations

import csv
import io
import lzma
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syncline.kinds import resolve
from syncline.reading import Reading
from syncline.write_model import parameters as parameter_file
from syncline.write_model import recording
from syncline.write_model.commits import Commits
from syncline.write_model.fit import fit
from syncline.write_model.predict import predict
from syncline.write_model.writes import Write, Writes

from tests.coretools import ROOT
from tests.test_commands import fails, ok, run

MS = 1_000_000
TICK = 4 * MS
MACHINE = ROOT / "tests" / "data" / "writes" / "machine.toml"
COSTS = ROOT / "tests" / "data" / "write-costs"
# 100 MB/s, 0.05 ms for the call of a synchronized write, 4 ms for a seek.
HOST = replace(parameter_file.read(str(MACHINE)), commit_ns=2.0 * MS, timestamp_granularity_ns=TICK)
SYNCHRONIZED, DSYNC = "O_SYNC", "O_DSYNC"


def write(at_ms: float, flag: str, offset: int, file_size: int | None, *, size: int = 4096, path: str = "a") -> Write:  # fmt: skip
    """Returns a direct write; `flag` is empty for a cached one."""
    kind = "direct_synchronized" if flag else "cached"
    return Write(
        *(round(at_ms * MS), MS, kind, path, offset, size),
        file_size=file_size,
        is_datasync=flag == DSYNC,
    )


def sync(at_ms: float, path: str = "a", *, is_datasync: bool = False) -> Write:
    return Write(round(at_ms * MS), MS, "sync", path, 0, 0, is_datasync=is_datasync)


def commits(*calls: Write) -> list[float | None]:
    found = Commits(TICK)
    return [found.call(one) for one in calls]


def test_a_synchronized_write_that_extends_its_file_waits_for_a_commit() -> None:
    assert commits(write(0, DSYNC, 0, 0), write(0, DSYNC, 4096, 4096)) == [1, 1]
    # One byte is enough; the last byte of the file is not.
    assert commits(write(0, DSYNC, 1, 4096), write(0, DSYNC, 0, 4096)) == [1, 0]
    # A write of nothing is no write.
    assert commits(write(0, SYNCHRONIZED, 8192, 0, size=0), sync(1)) == [0, 0]
    assert commits(write(0, DSYNC, 8192, None)) == [0]


def test_a_write_that_need_not_be_durable_waits_for_none() -> None:
    extends = replace(write(0, DSYNC, 0, 0), kind="direct")
    assert commits(write(0, "", 0, 0), extends) == [None, None]


def test_only_o_sync_needs_the_times_of_a_file() -> None:
    # The first write of a recording changes them. A tick of 4 ms later, they certainly are others; 1 ms later, with 25 %.
    times = (0, 100, 101, 101)
    assert commits(*(write(at, SYNCHRONIZED, 0, 4096) for at in times)) == [1, 1, 0.25, 0]
    assert commits(*(write(at, DSYNC, 0, 4096) for at in times)) == [0, 0, 0, 0]
    # A commit for the size has the times, too.
    assert commits(write(0, DSYNC, 0, 0), write(2, SYNCHRONIZED, 0, 4096)) == [1, 0.5]
    # They are of the last write that was made durable, not of the last write.
    assert commits(
        write(0, SYNCHRONIZED, 0, 4096), write(2, DSYNC, 0, 4096), write(3, SYNCHRONIZED, 0, 4096)
    ) == [1, 0, 0.75]


def test_a_sync_waits_for_what_writes_have_changed() -> None:
    assert commits(write(0, "", 0, 0), sync(1), sync(2)) == [None, 1, 0]
    assert commits(write(0, "", 0, 4096), sync(1, is_datasync=True), sync(2), sync(3)) == [None, 0, 1, 0]  # fmt: skip
    assert commits(write(0, "", 0, 0), sync(1, is_datasync=True), sync(2)) == [None, 1, 0]
    # The sync is of a file that was not written.
    assert commits(write(0, "", 0, 0), sync(1, "b"), sync(2, ""), sync(3)) == [None, 0, 1, 0]
    assert commits(sync(0, "")) == [0]


def test_a_commit_has_the_times_of_all_files() -> None:
    both = [write(0, "", 0, 4096), write(1, "", 0, 4096, path="b")]
    assert commits(*both, sync(10), sync(20, "b")) == [None, None, 1, 0]
    # A new size of another file is not in it.
    both = [write(0, "", 0, 4096), write(1, "", 0, 0, path="b")]
    assert commits(*both, sync(10), sync(20, "b")) == [None, None, 1, 1]


def test_a_sync_whose_time_has_no_commit() -> None:
    """The events of a kernel have the function that writes the data of a file system. The commit follows it."""
    calls = [write(0, "", 0, 0), replace(sync(5, ""), is_with_commit=False), sync(10)]
    assert commits(*calls) == [None, 0, 0]


def test_a_clock_without_ticks() -> None:
    found = Commits(0)
    calls = [write(0, "", 0, 4096), sync(1), sync(2), write(3, "", 0, 4096), sync(4)]
    assert [found.call(one) for one in calls] == [None, 1, 0, None, 1]


def test_a_file_that_was_cut_has_another_size() -> None:
    found = Commits(TICK)
    first = found.call(write(0, DSYNC, 0, 4096))
    found.cut("a")
    assert [first, found.call(write(1, DSYNC, 0, 4096)), found.call(write(1, DSYNC, 0, 4096))] == [0, 1, 0]  # fmt: skip


CALLS = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(["", SYNCHRONIZED, DSYNC, "fsync", "fdatasync"]), st.booleans()),
    min_size=1, max_size=20,
)  # fmt: skip


@given(CALLS)
def test_the_expected_number_is_that_of_all_phases_of_the_clock(
    drawn: Sequence[tuple[int, str, bool]],
) -> None:
    """A kernel whose clock ticks every 8 ns: each phase of it commits or does not."""
    tick, now, end, calls = 8, 0, 4096, []
    for wait, what, extends in drawn:
        now += wait
        if what.startswith("f"):
            calls.append(replace(sync(0, is_datasync=what == "fdatasync"), start_ns=now))
        else:
            calls.append(replace(write(0, what, end if extends else 0, end), start_ns=now))
            end += 4096 * extends

    def of_phase(phase: int) -> list[int]:
        mtime: int | None = None
        durable: int | None = None
        has_new_size = False
        found = []
        for call in calls:
            if call.kind != "sync":
                mtime = (call.start_ns + phase) // tick
                has_new_size |= call.offset + call.size > (call.file_size or 0)
            if call.kind == "cached":
                continue
            is_needed = has_new_size or (not call.is_datasync and mtime != durable)
            if is_needed:
                durable, has_new_size = mtime, False
            found.append(int(is_needed))
        return found

    phases = [of_phase(phase) for phase in range(tick)]
    model = Commits(tick)
    expected = [one for one in (model.call(call) for call in calls) if one is not None]
    assert expected == pytest.approx([sum(column) / tick for column in zip(*phases, strict=True)])


def test_what_a_commit_costs() -> None:
    calls = [write(0, DSYNC, 0, 0), write(10, DSYNC, 0, 4096), write(20, "", 4096, 4096), sync(30)]
    outcome = predict(HOST, Writes(calls))
    # 0.05 ms for the call, 40,960 ns for the data, 4 ms for the seek back to the start.
    assert [one.ns for one in outcome.predicted[:2]] == [2_090_960, 4_090_960]
    assert outcome.predicted[3].ns == 2_090_960
    assert [one.commit_ns for one in outcome.predicted] == [2_000_000, 0, None, 2_000_000]
    # An older file of parameters lacks it.
    old = predict(replace(HOST, commit_ns=None, timestamp_granularity_ns=None), Writes(calls))
    assert [one.ns for one in old.predicted[:2]] == [90_960, 4_090_960]
    assert [one.commit_ns for one in old.predicted] == [None] * 4
    assert "no commit_ns" in old.assumptions[0]
    # Without a call that waits for the device, nothing is assumed of it.
    assert not any("commit" in one for one in predict(HOST, Writes(calls[2:3])).assumptions)


def test_a_size_that_is_not_known_is_an_assumption() -> None:
    outcome = predict(HOST, Writes([write(0, DSYNC, 0, None), write(10, DSYNC, 0, 4096)]))
    assert "not known (1 write)" in outcome.assumptions[0]
    # A write that a sync makes durable is one of them, and another one is not.
    cached = [write(0, "", 0, None), write(1, "", 0, None, path="b")]
    assert "(1 write)" in predict(HOST, Writes([*cached, sync(9)])).assumptions[0]
    assert "(2 writes)" in predict(HOST, Writes([*cached, sync(9, "")])).assumptions[0]
    # What was written before does not extend it.
    outcome = predict(HOST, Writes([write(0, DSYNC, 4096, 8192), write(10, DSYNC, 0, None)]))
    assert "not known" not in outcome.assumptions[0]


def test_a_fit_finds_the_cost_of_a_commit() -> None:
    calls, end = [], 65_536
    for at in range(40):
        extends = at % 2 == 0
        size = 4096 * (1 + at % 5)
        made = write(10 * at, DSYNC, end if extends else 0, end, size=size)
        end = max(end, made.offset + size)
        cost = 300_000 + size * 20 + 7_000_000 * (made.offset + size > (made.file_size or 0))
        calls.append(replace(made, duration_ns=cost))
    fitted, said = fit(HOST, Writes(calls))
    assert fitted.commit_ns == pytest.approx(7_000_000)
    assert fitted.sync_write_call_ns == pytest.approx(300_000)
    assert fitted.device_write_bytes_per_s == pytest.approx(50e6)
    assert (
        "commit_ns is from 20 writes that are both direct and synchronized that wait for a commit"
        in said
    )
    # Only such as extend: what they take besides the old call and the data, whose bandwidth they show.
    fitted, said = fit(HOST, Writes(calls[::2]))
    assert fitted.sync_write_call_ns == HOST.sync_write_call_ns
    assert fitted.device_write_bytes_per_s == pytest.approx(50e6)
    assert fitted.commit_ns == pytest.approx(7_000_000 + 300_000 - HOST.sync_write_call_ns)
    assert any(one.startswith("sync_write_call_ns stays: 0 writes that are both direct and synchronized that wait for no commit, 8 needed") for one in said)  # fmt: skip
    # Without the cost of a commit in the file, all are alike.
    old = replace(HOST, commit_ns=None, timestamp_granularity_ns=None)
    fitted, said = fit(old, Writes(calls[::2]))
    assert fitted.commit_ns is None
    assert fitted.sync_write_call_ns == pytest.approx(7_300_000)
    assert "sync_write_call_ns is from 20 writes that are both direct and synchronized" in said


@pytest.mark.parametrize("kind", ["synchronized", "sync"])
def test_a_fit_also_takes_synchronized_writes_and_syncs(kind: str) -> None:
    """Made with a call of 0.4 ms and a commit of 3 ms. What else they cost is in the old parameters."""
    calls, end = [], 65_536
    for at in range(40):
        extends = at % 2 == 0
        made = write(10 * at, "" if kind == "sync" else DSYNC, end if extends else 0, end)
        end += 4096 * extends
        calls.append(made if kind == "sync" else replace(made, kind=kind))
        if kind == "sync":
            calls.append(sync(10 * at + 5, is_datasync=True))
    made_by = replace(HOST, seek_ns=0.0, sync_write_call_ns=400_000.0, commit_ns=3.0 * MS)
    costs = [round(one.ns) for one in predict(made_by, Writes(calls)).predicted]
    calls = [replace(one, duration_ns=cost) for one, cost in zip(calls, costs, strict=True)]
    fitted, said = fit(replace(HOST, seek_ns=0.0), Writes(calls))
    assert fitted.sync_write_call_ns == pytest.approx(400_000, abs=1000)
    assert fitted.commit_ns == pytest.approx(3.0 * MS, abs=1000)
    what = "syncs" if kind == "sync" else "synchronized writes through page cache"
    assert f"sync_write_call_ns is from 20 {what} that wait for no commit" in said
    assert f"commit_ns is from 20 {what} that wait for a commit" in said


def test_a_fit_of_strace_keeps_its_work_out_of_bandwidths() -> None:
    """Writes of one size to new pages, 50 us longer than they are: nobody knows how much of it is the call."""
    calls = [replace(write(at, "", 65_536 * at, None, size=65_536), duration_ns=82_768) for at in range(20)]  # fmt: skip
    assert fit(HOST, Writes(calls))[0].page_cache_bytes_per_s < HOST.page_cache_bytes_per_s / 2
    fitted, said = fit(HOST, Writes(calls, has_overhead=True))
    assert fitted.page_cache_bytes_per_s == HOST.page_cache_bytes_per_s
    assert any("page_cache_bytes_per_s stays: the recorder's own work" in one for one in said)


def test_rows_for_what_waits_for_a_commit(tmp_path: Path, machine: Path) -> None:
    table = tmp_path / "table.csv"
    rows = (
        "0,1,cached,b,0,4096\n" + ROWS.format("", "") + "9001000,1,direct_synchronized,a,0,4096\n"
    )
    table.write_text(f"{HEAD}\n{rows}")

    def names(by: str) -> list[str]:
        text = ok("model", "predict", table, "--parameters", machine, "--by", by, "--format", "csv")
        return [row["scenario"] for row in csv.DictReader(io.StringIO(text))]

    ours = "direct_synchronized"
    assert names("commit") == ["cached", f"{ours}, commit", f"{ours}, perhaps a commit"]
    assert names("path") == ["cached, b", f"{ours}, a"]


HEAD = "start_ns,duration_ns,kind,path,offset_bytes,size_bytes"
ROWS = "0,1,direct_synchronized,a,0,4096{}\n9000000,1,direct_synchronized,a,0,4096{}\n"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    path = tmp_path / "machine.toml"
    path.write_text(parameter_file.as_toml(HOST))
    return path


def commits_of(text: str, tmp_path: Path, machine: Path) -> list[str]:
    table = tmp_path / "table.csv"
    table.write_text(text)
    printed = ok("model", "predict", table, "--parameters", machine, "--each", "--format", "csv")
    return [row["predicted_commit_ns"] for row in csv.DictReader(io.StringIO(printed))]


def test_a_table_may_have_the_size_of_each_file(tmp_path: Path, machine: Path) -> None:
    # Without it, a file is empty at the start. The second write is O_SYNC and more than a tick later.
    assert commits_of(f"{HEAD}\n" + ROWS.format("", ""), tmp_path, machine) == ["2000000"] * 2
    shown = run("model", "predict", tmp_path / "table.csv", "--parameters", machine).stdout
    assert "each file is empty at the start: the table has no file_size_bytes" in shown
    assert "writes are O_SYNC, and syncs are fsync: the table has no is_datasync" in shown
    head = f"{HEAD},file_size_bytes,is_datasync\n"
    assert commits_of(head + ROWS.format(",0,1", ",4096,1"), tmp_path, machine) == ["2000000", "0"]
    assert commits_of(head + ROWS.format(",4096,0", ",,1"), tmp_path, machine) == ["2000000", "0"]
    (tmp_path / "bad.csv").write_text(head + ROWS.format(",0,yes", ",0,0"))
    said = fails(3, "model", "predict", tmp_path / "bad.csv", "--parameters", machine)
    assert "bad.csv:2: is_datasync 'yes' is not 0 or 1" in said
    (tmp_path / "bad.csv").write_text(head + ROWS.format(",x,0", ",0,0"))
    said = fails(3, "model", "predict", tmp_path / "bad.csv", "--parameters", machine)
    assert "bad.csv:2: file_size_bytes 'x'" in said
    (tmp_path / "bad.csv").write_text(f"{HEAD}\n0,1,sync,a,0,4096\n")
    said = fails(3, "model", "predict", tmp_path / "bad.csv", "--parameters", machine)
    assert "bad.csv:2: a sync with an offset or a size" in said


def test_parameters_have_both_or_none(tmp_path: Path, machine: Path) -> None:
    lines = machine.read_text().splitlines()
    machine.write_text("\n".join(one for one in lines if "granularity" not in one))
    table = tmp_path / "table.csv"
    table.write_text(f"{HEAD}\n" + ROWS.format("", ""))
    said = fails(3, "model", "predict", table, "--parameters", machine)
    assert "commit_ns needs timestamp_granularity_ns" in said


STRACE = """\
1 1000.000000 openat(AT_FDCWD, "/d/new", O_WRONLY|O_CREAT|O_EXCL|O_DSYNC, 0600) = 3</d/new> <0.000010>
1 1000.100000 write(3</d/new>, "x", 4096) = 4096 <0.001>
1 1000.200000 pwrite64(3</d/new>, "x", 4096, 0) = 4096 <0.001>
1 1000.300000 openat(AT_FDCWD, "/d/old", O_RDWR|O_DSYNC) = 4</d/old> <0.000010>
1 1000.400000 pwrite64(4</d/old>, "x", 4096, 8192) = 4096 <0.001>
1 1000.500000 lseek(4</d/old>, 0, SEEK_END) = 16384 <0.000010>
1 1000.600000 pwrite64(4</d/old>, "x", 4096, 12288) = 4096 <0.001>
1 1000.700000 write(4</d/old>, "x", 4096) = 4096 <0.001>
1 1000.800000 openat(AT_FDCWD, "/d/log", O_WRONLY|O_APPEND|O_SYNC) = 5</d/log> <0.000010>
1 1000.900000 write(5</d/log>, "x", 100) = 100 <0.001>
1 1001.000000 ftruncate(4</d/old>, 4096) = 0 <0.000010>
1 1001.100000 pwrite64(4</d/old>, "x", 4096, 0) = 4096 <0.001>
1 1001.200000 pwrite64(4</d/old>, "x", 4096, 0) = 4096 <0.001>
1 1001.300000 openat(AT_FDCWD, "/d/plain", O_WRONLY|O_TRUNC) = 6</d/plain> <0.000010>
1 1001.400000 pwritev2(6</d/plain>, [{iov_base="x", iov_len=512}], 1, 0, RWF_DSYNC) = 512 <0.001>
1 1001.500000 pwritev2(6</d/plain>, [{iov_base="x", iov_len=512}], 1, 0, RWF_SYNC) = 512 <0.001>
1 1001.600000 pwritev2(6</d/plain>, [{iov_base="x", iov_len=512}], 1, 0, RWF_DSYNC) = 512 <0.001>
1 1001.700000 pwrite64(6</d/plain>, "x", 512, 0) = 512 <0.001>
1 1001.800000 fdatasync(6</d/plain>) = 0 <0.001>
1 1001.900000 fsync(6</d/plain>) = 0 <0.001>
"""


def test_calls_of_strace_say_whether_a_file_grows(tmp_path: Path) -> None:
    log = tmp_path / "writes.strace"
    log.write_text(STRACE)
    recorded = recording.read(resolve(str(log)), Reading(source="strace"))
    found = [(one.file_size, one.is_datasync) for one in recorded.writes]
    assert found == [
        *((0, True), (4096, True)),
        # Opened without O_CREAT: its size is not known before the seek.
        *((None, True), (16384, True), (16384, True)),
        (0, False),
        *((4096, True), (4096, True)),
        *((0, True), (512, False), (512, True), (512, False)),
        *((None, True), (None, False)),
    ]
    outcome = predict(HOST, recorded)
    assert [one.commits for one in outcome.predicted] == [1, 0, 0, 0, 1, 1, 1, 0, 1, 1, 0, None, 0, 1]  # fmt: skip


@pytest.mark.parametrize("file_system", ["ext4", "xfs"])
def test_the_commits_of_real_writes(file_system: str, tmp_path: Path) -> None:
    """On a device that takes 20 ms for a write: ext4 waits for two more writes in a commit, xfs for one."""
    known = parameter_file.read(str(COSTS / f"durable-{file_system}.toml"))
    table = tmp_path / "durable.csv"
    table.write_bytes(lzma.decompress((COSTS / f"durable-{file_system}.csv.xz").read_bytes()))
    recorded = recording.read_table(str(table), Reading())
    found = {one.scenario: one for one in predict(known, recorded).summaries}
    without = replace(known, commit_ns=None, intervals={})
    before = {one.scenario: one for one in predict(without, recorded).summaries}
    kinds = {"direct", "direct-dsync", "synchronized", "synchronized-dsync", "fsync", "fdatasync"}
    sizes = {"4KiB", "4KiB again", "64KiB", "64KiB again"}
    assert set(found) == {f"{kind} {size}" for kind in kinds for size in sizes}
    for name, one in found.items():
        assert one.total_error is not None
        assert one.error is not None
        assert abs(one.total_error) < 0.2, name
        # A write through page cache before a sync is so short that its own error is noise.
        has_syncs = name.startswith(("fsync", "fdatasync"))
        assert has_syncs or one.error < 0.2, name
        # Only what is durable without times, in blocks that exist, waits for no commit.
        is_plain = name.endswith("again") and ("-dsync" in name or "fdatasync" in name)
        change = one.predicted_ns - before[name].predicted_ns
        calls = one.writes // 2 if has_syncs else one.writes
        assert change == pytest.approx(0 if is_plain else calls * (known.commit_ns or 0)), name


APPENDS = """\
1 1000.1 openat(AT_FDCWD, "/d/a", O_WRONLY|O_CREAT|O_TRUNC|O_APPEND|O_DSYNC, 0644) = 3</d/a> <0.000010>
1 1000.2 write(3</d/a>, "x", 4096) = 4096 <0.06>
1 1000.3 pwrite64(3</d/a>, "x", 4096, 0) = 4096 <0.06>
1 1000.4 pwritev2(3</d/a>, [{iov_base="x", iov_len=4096}], 1, 0, RWF_NOAPPEND) = 4096 <0.02>
1 1000.5 write(3</d/a>, "x", 4096) = 4096 <0.06>
1 1000.6 openat(AT_FDCWD, "/d/b", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 4</d/b> <0.000010>
1 1000.7 pwritev2(4</d/b>, [{iov_base="x", iov_len=4096}], 1, -1, RWF_DSYNC) = 4096 <0.06>
1 1000.8 pwritev2(4</d/b>, [{iov_base="x", iov_len=4096}], 1, 0, RWF_APPEND|RWF_DSYNC) = 4096 <0.06>
1 1000.9 pwritev2(4</d/b>, [{iov_base="x", iov_len=4096}], 1, -1, RWF_DSYNC) = 4096 <0.02>
1 1001.0 fcntl(4</d/b>, F_SETFL, O_WRONLY|O_APPEND) = 0 <0.000010>
1 1001.1 pwritev2(4</d/b>, [{iov_base="x", iov_len=100}], 1, -1, RWF_DSYNC) = 100 <0.06>
1 1001.2 fcntl(4</d/b>, F_SETFL, O_WRONLY) = 0 <0.000010>
1 1001.3 pwrite64(4</d/b>, "x", 100, 0) = 100 <0.00001>
"""


def test_calls_that_append(tmp_path: Path) -> None:
    log = tmp_path / "appends.strace"
    log.write_text(APPENDS)
    recorded = recording.read(resolve(str(log)), Reading(source="strace"))
    places = [(one.path, one.offset, one.file_size) for one in recorded.writes]
    a, b = "/d/a", "/d/b"
    assert places == [
        *((a, 0, 0), (a, 4096, 4096), (a, 0, 8192), (a, 8192, 8192)),
        # The position is not moved by the append in between.
        *((b, 0, 0), (b, 4096, 4096), (b, 4096, 8192), (b, 8192, 8192), (b, 0, 8292)),
    ]
    found = [one.commits for one in predict(HOST, recorded).predicted]
    assert found == [1, 1, 0, 1, 1, 1, 0, 1, None]
