"""`syncline model measure`: on a real device, what it refuses, and what it leaves behind."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from syncline.errors import InputError
from syncline.write_model import estimate, measure, parameters

from tests.coretools import ROOT
from tests.signals import use_default_signals
from tests.test_commands import fails, left

SYNCLINE = [Path(sys.executable).parent / "syncline"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder on a device: that of the checkout."""
    path = ROOT / "build" / f"measure-{os.getpid()}"
    path.mkdir(parents=True)
    if measure._type(path) in measure._IN_MEMORY:
        pytest.skip("the checkout is in memory")
    yield path
    path.rmdir()


def test_a_line_and_its_intervals() -> None:
    exact = estimate.line([(0, 5), (1, 7), (2, 9), (3, 11)])
    assert [one.value for one in exact] == pytest.approx([5, 2])
    assert exact[1].interval.high - exact[1].interval.low == pytest.approx(0, abs=1e-6)
    # By hand: the residuals are -0.5, 1, -0.5 about 1.5 + 1.5 x; t of one degree of freedom is 12.706.
    start, slope = estimate.line([(0, 1), (1, 4), (2, 4)])
    assert (start.value, slope.value) == pytest.approx((1.5, 1.5))
    assert slope.interval.high - slope.value == pytest.approx(12.706 * (1.5 / 2) ** 0.5, rel=1e-3)
    assert start.interval.high - start.value == pytest.approx(
        12.706 * (1.5 * (1 / 3 + 1 / 2)) ** 0.5, rel=1e-3
    )
    with pytest.raises(ValueError, match="two sizes"):
        estimate.line([(1, 1), (1, 2), (1, 3)])
    with pytest.raises(ValueError, match="does not grow"):
        estimate.line([(0, 5), (1, 1), (2, 5)])[1].inverse()


def test_pauses_of_the_machine_are_not_in_the_cost_of_a_call() -> None:
    draw = random.Random(8)

    def transfer(part: memoryview) -> int:
        # 1 us and half a ns for each byte. One in ten waits a millisecond for the CPU.
        pause = 1_000_000 if draw.random() < 0.1 else 0
        return 1000 + len(part) // 2 + draw.randrange(40) + pause

    memory = memoryview(bytearray(4096))
    found = measure._call_of_medians(transfer, [memory[:few] for few in range(64, 4096, 512)])
    assert found.value == pytest.approx(1020, abs=10)
    less = found.less(500)
    assert less.value == found.value - 500
    assert less.interval.high - less.interval.low == pytest.approx(
        found.interval.high - found.interval.low
    )


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    draw = random.Random(5)
    covered = {"mean": 0, "start": 0, "slope": 0}
    rounds = 1000
    for _ in range(rounds):
        average = estimate.mean([draw.gauss(10, 3) for _ in range(8)])
        start, slope = estimate.line([(x, 2 + 3 * x + draw.gauss(0, 1)) for x in range(10)])
        for name, one, truth in (("mean", average, 10), ("start", start, 2), ("slope", slope, 3)):
            covered[name] += one.interval.low <= truth <= one.interval.high
    # 95 %, and three standard errors of the count.
    assert all(abs(count / rounds - 0.95) < 0.021 for count in covered.values()), covered


def test_times_that_differ_too_much_give_no_bandwidth(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "_memory", lambda: estimate.mean([1, 1000]).inverse())
    with pytest.raises(InputError, match="too different times") as refused:
        measure.measure(str(folder), 1 << 20, lambda step: None)
    assert str(folder) in str(refused.value)
    assert "measure again" in refused.value.hint
    assert not list(folder.iterdir())


def test_a_machine_is_measured(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "machine.toml"
    done = subprocess.run(
        [*SYNCLINE, "model", "measure", "--dir", folder, "--max-size", "32M", "-o", output],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "does not grow" in done.stderr:
        pytest.skip("the device is too busy to be measured")
    assert done.returncode == 0, done.stderr
    found = parameters.read(str(output))
    vmstat = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    page = os.sysconf("SC_PAGE_SIZE")
    limit = int(vmstat["nr_dirty_background_threshold"]) * page
    assert found.background_limit_bytes == pytest.approx(limit, rel=0.2)
    assert found.block_size_bytes == os.statvfs(folder).f_bsize
    assert found.library_buffer_bytes % 512 == 0
    # In bytes per second. Which is faster depends on the caches: 32 MiB of memory do not fit them, a write of 1 MiB does.
    assert min(found.memory_bytes_per_s, found.page_cache_bytes_per_s) > 1e7
    assert set(found.intervals) >= {
        "memory_bytes_per_s", "page_cache_bytes_per_s", "rewrite_bytes_per_s", "device_write_bytes_per_s",
        "device_read_bytes_per_s", "write_call_ns", "sync_write_call_ns", "direct_write_call_ns", "seek_ns",
    }  # fmt: skip
    is_measured = "reduced_bytes_per_s" in found.intervals
    assert is_measured or "# reduced_bytes_per_s was not measured" in output.read_text()
    assert left(folder) == []


def test_no_file_is_larger_than_allowed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    largest = 0

    def watched(file: int, data: bytes, place: int) -> int:
        nonlocal largest
        done = pwrite(file, data, place)
        largest = max(largest, os.fstat(file).st_size)
        return done

    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", watched)
    # On a busy machine small transfers may say nothing about the bandwidth.
    with contextlib.suppress(InputError):
        measure._direct(folder, 1 << 20, lambda step: None)
    assert largest == 1 << 20
    assert not list(folder.iterdir())
    arguments = ("model", "measure", "--dir", folder, "--max-size", "512K")
    assert "files of 512 KiB are too small" in fails(3, *arguments)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_file(folder: Path, tmp_path: Path, number: int) -> None:
    output = tmp_path / "machine.toml"
    running = subprocess.Popen(
        [*SYNCLINE, "model", "measure", "--dir", folder, "-o", output],
        stderr=subprocess.PIPE, preexec_fn=use_default_signals,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not left(folder) and time.monotonic() < until and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(number)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 128 + number, err
    assert left(folder) == []
    assert not output.exists()


def test_folders_that_cannot_be_measured(tmp_path: Path) -> None:
    output = tmp_path / "machine.toml"
    arguments = ("model", "measure", "-o", output, "--dir")
    if Path("/dev/shm").is_dir() and measure._type(Path("/dev/shm")) == "tmpfs":
        assert "is in memory (tmpfs)" in fails(3, *arguments, "/dev/shm")
    assert "is not a folder" in fails(3, *arguments, tmp_path / "none")
    assert "not a size" in fails(2, *arguments, tmp_path, "--max-size", "7")
    assert not output.exists()


def test_a_machine_that_refuses(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def refused(wanted: str, hint: str = "") -> None:
        with pytest.raises(InputError) as raised:
            measure.measure(str(folder), 32 << 20, lambda _: None)
        assert wanted in raised.value.message
        assert hint in raised.value.hint
        assert left(folder) == []

    real_open, real_statvfs, real_write = os.open, os.statvfs, os.pwrite

    def no_direct(path: str, flags: int, *rest: int, **more: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real_open(path, flags, *rest, **more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", no_direct)
        refused("does not accept O_DIRECT")
    with monkeypatch.context() as patched:
        full = SimpleNamespace(f_bavail=1000, f_frsize=4096, f_blocks=10**9, f_bsize=4096)
        patched.setattr(os, "statvfs", lambda path: full if Path(path) == folder else real_statvfs(path))  # fmt: skip
        refused("4 MiB free", "--max-size")
    with monkeypatch.context() as patched:
        # The disk becomes full meanwhile.
        patched.setattr(os, "pwrite", lambda file, data, at: real_write(file, data[:512], at))
        refused("no space left on device; its files are removed", "free some space")
