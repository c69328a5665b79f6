"""Measures the parameters of a machine and of the device below a folder."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import math
import mmap
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from syncline import scratch
from syncline.errors import InputError

from . import estimate
from .estimate import Estimate
from .parameters import Parameters

__all__ = ["measure"]

_KIB, _MIB = 1024, 1024 * 1024
_SECOND_NS = 1e9
_SMALL = tuple(kib * _KIB for kib in (4, 8, 16, 32, 64))
# The largest direct transfer, if the file is that large, and the shares of it that are measured too.
_LARGEST = 16 * _MIB
_SHARES = (16, 4, 1)
_REPEATS = 8
# Sizes are repeated until half an interval is this share of the value, or for so long.
_ENOUGH = 0.1
_PATIENCE_NS = 5e9
# Single calls are repeated for at least so long, and so often: a device is not always equally fast.
_LEAST_NS = 1e9
_LEAST_SAMPLES = 40
# A mean is no typical value if it is so many times the median.
_UNEVEN = 1.5
# CLOCK_REALTIME_COARSE of clock_gettime(2), from which files have their times.
_CLOCK_OF_FILES = 5
# A median is of this many transfers.
_LOOKS = 101
_PIECE = _MIB
# What direct writes need: the file that they overwrite, which seeks cross too. A smaller --max-size makes it smaller.
_DIRECT_FILE = 64 * _MIB
_LEAST_FILE = _MIB
# The share of free space and memory that stays free, because measuring must not make the machine unusable.
_RESERVE = 0.05
# In memory: no device, so nothing to measure.
_IN_MEMORY = {"tmpfs", "ramfs", "hugetlbfs", "rootfs"}
_IN_MEMORY_HINT = "name a folder on the device that the program writes to"


def measure(folder: str, most_bytes: int, say: Callable[[str], None]) -> Parameters:
    """Measures, with files in `folder` that are removed afterwards, also after a signal.

    Args:
        most_bytes: the most that one file may have.
        say: is called with the name of each step.

    Raises:
        InputError: the folder or the machine does not allow it. Nothing is guessed instead.
    """
    where = Path(folder)
    _check_folder(where)
    if most_bytes < _LEAST_FILE:
        raise InputError(
            f"files of {most_bytes / _KIB:,.0f} KiB are too small to measure a device",
            "give --max-size at least 1M; 64M or more measures best",
        )
    background, hard, expire_ns, writeback_ns = _limits()
    room = os.statvfs(where)
    free = room.f_bavail * room.f_frsize
    buffered = min(most_bytes, background // 2)
    # Beyond the background limit, up to where throttling begins.
    wanted = background + (hard - background) // 4
    reduced = wanted if wanted <= most_bytes else 0
    # A sixteenth of it is a whole number of small transfers, and the largest transfer divides it.
    direct = 1 << (min(_DIRECT_FILE, most_bytes).bit_length() - 1)
    # Next to the file for direct writes is one that grows.
    needed = max(2 * direct, buffered, reduced)
    if free - needed < _RESERVE * room.f_blocks * room.f_frsize:
        raise InputError(
            f"{folder} has {free / _MIB:,.0f} MiB free; measuring needs {needed / _MIB:,.0f} MiB and leaves 5 % free",
            "free some space, name a folder on a larger file system, or lower --max-size",
        )
    found: dict[str, Estimate] = {}
    notes = [
        f"measured in {where.resolve()} by syncline model measure",
        f"Linux {platform.release()} {platform.machine()}, {_type(where)}",
        "the intervals are of the seconds in which it was measured; measure three times to see how much a device varies",
    ]
    if direct < _DIRECT_FILE:
        notes.append(
            f"direct transfers went to {direct / _MIB:,.1f} MiB of the device only, because of --max-size"
        )
    with _failures(folder), scratch.folder(where) as work:
        say("memory")
        found["memory_bytes_per_s"] = _memory()
        device, uneven = _direct(work, direct, say)
        found |= device
        notes += [
            f"{one} is a mean, and most writes take much less: the device is uneven, so predictions of single writes are too long"
            for one in uneven
        ]
        say("page cache")
        found |= _page_cache(work, buffered)
        if reduced:
            say("page cache during writeback")
            speed = _reduced(work, background, reduced)
            found["reduced_bytes_per_s"] = speed
        else:
            found["reduced_bytes_per_s"] = found["page_cache_bytes_per_s"]
            notes.append(
                f"reduced_bytes_per_s was not measured, it is page_cache_bytes_per_s: writeback begins at {background / _MIB:,.0f} MiB,"
                f" above --max-size ({most_bytes / _MIB:,.0f} MiB); --max-size {math.ceil(wanted / _MIB)}M measures it"
            )
        buffer = _library_buffer(work)
    known = Parameters(
        **{name: one.value for name, one in found.items()},
        timestamp_granularity_ns=round(time.clock_getres(_CLOCK_OF_FILES) * _SECOND_NS),
        block_size_bytes=room.f_bsize,
        library_buffer_bytes=buffer,
        background_limit_bytes=background,
        hard_limit_bytes=hard,
        dirty_expire_ns=expire_ns,
        dirty_writeback_ns=writeback_ns,
        intervals={
            name: one.interval
            for name, one in found.items()
            if name != "reduced_bytes_per_s" or reduced
        },
        notes=tuple(notes),
    )
    return known


@contextlib.contextmanager
def _failures(folder: str) -> Iterator[None]:
    """Names the folder in what the machine reports."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = "free some space, or lower --max-size" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "name another folder"  # fmt: skip
        raise InputError(f"cannot measure in {folder}: {reason}; its files are removed", hint) from None  # fmt: skip
    except ValueError:
        # An interval that reaches 0: no bandwidth follows from such times.
        raise InputError(
            f"cannot measure in {folder}: equal transfers take too different times; its files are removed",
            "stop what else uses the machine, and measure again",
        ) from None


def _check_folder(where: Path) -> None:
    if not where.is_dir():
        raise InputError(f"{where} is not a folder", "name an existing folder: --dir DIR")
    if not os.access(where, os.W_OK | os.X_OK):
        raise InputError(f"{where} cannot be written", "name another folder, or change its mode")
    kind = _type(where)
    if kind in _IN_MEMORY:
        raise InputError(f"{where} is in memory ({kind}), so no device is written", _IN_MEMORY_HINT)


def _type(where: Path) -> str:
    """Returns the type of the file system."""
    device = where.stat().st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    kind = "unknown file system"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        columns = line.split()
        if columns[2] == name:
            kind = columns[columns.index("-") + 1]
    return kind


def _limits() -> tuple[int, int, int, int]:
    """Returns the background limit and the hard limit in bytes, the time to expiry, and the time between two looks for it, in ns."""
    page = os.sysconf("SC_PAGE_SIZE")
    try:
        counters = dict(
            line.split()[:2] for line in Path("/proc/vmstat").read_text().splitlines() if line
        )
        background = int(counters["nr_dirty_background_threshold"]) * page
        hard = int(counters["nr_dirty_threshold"]) * page
        expire, period = (
            int(Path(f"/proc/sys/vm/dirty_{name}_centisecs").read_text())
            for name in ("expire", "writeback")
        )
    except (OSError, KeyError, ValueError) as error:
        raise InputError(
            f"the kernel does not report the limits of dirty page cache: {error}",
            "measure where /proc/vmstat and /proc/sys/vm are complete, outside this container",
        ) from None
    return background, hard, expire * 10_000_000, period * 10_000_000


def _memory() -> Estimate:
    """Copies memory to memory."""
    size = 32 * _MIB
    source, target = memoryview(bytearray(b"x") * size), memoryview(bytearray(size))
    times = []
    until = time.perf_counter_ns() + _PATIENCE_NS
    while True:
        for _ in range(_REPEATS):
            start = time.perf_counter_ns()
            target[:] = source
            times.append((time.perf_counter_ns() - start) / size)
        # The first copy also makes the pages.
        found = estimate.mean(times[1:])
        if _is_enough(found) or time.perf_counter_ns() > until:
            return found.inverse(_SECOND_NS)


def _is_enough(found: Estimate) -> bool:
    """Returns whether the interval of an estimate is small."""
    return found.interval.high - found.interval.low <= 2 * _ENOUGH * found.value


def _aligned(size: int) -> mmap.mmap:
    """Returns memory that direct I/O accepts."""
    memory = mmap.mmap(-1, size)
    memory.write(random.Random(1).randbytes(64 * _KIB) * (size // (64 * _KIB)))
    return memory


def _written(size: int) -> memoryview:
    """Returns memory to copy from, as a program has it. All pages of zeros that were never written are one page of the kernel."""
    return memoryview(_aligned(-(-size // (64 * _KIB)) * (64 * _KIB)))[:size]


def _timed(work: Callable[[], int], size: int) -> int:
    """Returns how long a read or a write of `size` bytes takes, in ns."""
    start = time.perf_counter_ns()
    done = work()
    took = time.perf_counter_ns() - start
    if done != size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return took


def _direct(
    work: Path, file_bytes: int, say: Callable[[str], None]
) -> tuple[dict[str, Estimate], list[str]]:
    """Measures the device: estimates by parameter, and the names of those that are uneven."""
    path = work / "direct"
    large = [min(_LARGEST, file_bytes) // share for share in _SHARES]
    with contextlib.ExitStack() as cleanup:
        try:
            synchronized, plain = (
                _opened_direct(cleanup, path, flags) for flags in (os.O_DSYNC, 0)
            )
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise InputError(f"{work.parent} does not accept O_DIRECT, so the device cannot be measured", _IN_MEMORY_HINT) from None  # fmt: skip
            raise
        memory = _aligned(max(large[-1], 64 * _KIB))
        cleanup.callback(memory.close)
        view = memoryview(memory)
        cleanup.callback(view.release)
        # Blocks that exist: a first write would also measure their allocation.
        for place in range(0, file_bytes, large[-1]):
            _timed(lambda place=place: os.pwrite(synchronized, view[: large[-1]], place), large[-1])
        draw = random.Random(2)

        def write(size: int) -> int:
            place = draw.randrange(file_bytes // size) * size
            return _timed(lambda: os.pwrite(synchronized, view[:size], place), size)

        def read(size: int) -> int:
            place = draw.randrange(file_bytes // size) * size
            return _timed(lambda: os.preadv(synchronized, [view[:size]], place), size)

        def follow(size: int, file: int = synchronized) -> int:
            nonlocal place
            place = place if place + size <= file_bytes else 0
            took = _timed(lambda: os.pwrite(file, view[:size], place), size)
            place += size
            return took

        place = 0
        size = _SMALL[0]
        growing = _opened_direct(cleanup, work / "growing", os.O_DSYNC)
        end = 0

        def extend() -> int:
            nonlocal end
            end += size
            return _timed(lambda: os.pwrite(growing, view[:size], end - size), size)

        say("calls of direct and synchronized writes")
        calls = {
            "sync_write_call_ns": _call(follow, _SMALL),
            "direct_write_call_ns": _call(lambda size: follow(size, plain), _SMALL),
        }
        say("commits and seeks")
        # A write to blocks that exist, and one that extends the file, in turn.
        calls["commit_ns"] = _series(lambda: extend() - follow(size), file_bytes // size)
        calls["seek_ns"] = _series(lambda: write(size) - follow(size))
        say("bandwidth of the device")
        found = {
            "device_write_bytes_per_s": _bandwidth("writes", write, large),
            "device_read_bytes_per_s": _bandwidth("reads", read, large),
        }
    found |= {name: one for name, (one, _) in calls.items()}
    # The difference of two writes is uneven if they are.
    uneven = [
        name for name, (_, is_uneven) in calls.items() if is_uneven and name.endswith("_call_ns")
    ]
    return found, uneven


def _opened_direct(cleanup: contextlib.ExitStack, path: Path, flags: int) -> int:
    """Opens a file for direct I/O, until the cleanup also removes it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT | flags, 0o600)
    cleanup.callback(path.unlink, missing_ok=True)
    cleanup.callback(os.close, file)
    return file


def _call(transfer: Callable[[int], int], sizes: Sequence[int]) -> tuple[Estimate, bool]:
    """Returns the cost of a call: what a line through transfers of small sizes, in turn, has at size 0. And whether it is uneven."""
    return _series(lambda: estimate.line([(size, transfer(size)) for size in sizes])[0].value)


def _series(sample: Callable[[], float], most: int = sys.maxsize) -> tuple[Estimate, bool]:
    """Returns the mean of samples that are taken for some time, and whether it is uneven: most samples are much below the mean.

    Args:
        most: the most samples that are taken.
    """
    values: list[float] = []
    begin = time.perf_counter_ns()
    look = begin + _LEAST_NS
    while len(values) < most:
        values.append(sample())
        now = time.perf_counter_ns()
        if len(values) < _LEAST_SAMPLES or now < look:
            continue
        if _is_enough(estimate.mean_of_series(values)) or now > begin + _PATIENCE_NS:
            break
        look = now + _LEAST_NS / 10
    found = estimate.mean_of_series(values)
    return found.at_least(0), found.value > _UNEVEN * max(0.0, statistics.median(values))


def _call_of_medians(
    transfer: Callable[[memoryview], int], parts: Sequence[memoryview]
) -> Estimate:
    """Returns the same from the median of each size in turn, for transfers that need nothing but a CPU."""
    points: list[tuple[int, float]] = []
    until = time.perf_counter_ns() + _PATIENCE_NS
    while True:
        points += [
            (len(part), statistics.median(transfer(part) for _ in range(_LOOKS))) for part in parts
        ]
        # A line needs three points.
        start, _ = estimate.line(points)
        if (len(points) > len(parts) and _is_enough(start)) or time.perf_counter_ns() > until:
            return start


def _bandwidth(what: str, transfer: Callable[[int], int], sizes: Sequence[int]) -> Estimate:
    """Returns a bandwidth: the slope of a line through transfers of different sizes, in turn, which take that many ns."""
    points: list[tuple[int, int]] = []
    until = time.perf_counter_ns() + _PATIENCE_NS
    while True:
        points += [(size, transfer(size)) for size in sizes for _ in range(2)]
        _, slope = estimate.line(points)
        if len(points) >= _REPEATS * len(sizes) and _is_enough(slope):
            return slope.inverse(_SECOND_NS)
        if time.perf_counter_ns() > until:
            break
    try:
        return slope.inverse(_SECOND_NS)
    except ValueError as error:
        raise InputError(
            f"direct {what}: {error}, so the bandwidth is not known",
            "stop what else uses the device, and measure again",
        ) from None


def _page_cache(work: Path, size: int) -> dict[str, Estimate]:
    """Measures new page cache, page cache that is dirty already, and a call."""
    piece = min(_PIECE, max(_SMALL[0], size // 16))
    data = _written(piece)
    path = work / "cached"
    os.sync()
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        count = max(2, size // piece)
        new: list[float] = []
        dirty: list[float] = []
        until = time.perf_counter_ns() + _PATIENCE_NS
        while True:
            os.ftruncate(file, 0)
            for times in (new, dirty):
                os.lseek(file, 0, os.SEEK_SET)
                times += [_timed(lambda: os.write(file, data), piece) / piece for _ in range(count)]
            if _is_enough(estimate.mean(new)) and _is_enough(estimate.mean(dirty)):
                break
            if time.perf_counter_ns() > until:
                break
    finally:
        os.close(file)
        path.unlink()
    return {
        "page_cache_bytes_per_s": estimate.mean(new).inverse(_SECOND_NS),
        "rewrite_bytes_per_s": estimate.mean(dirty).inverse(_SECOND_NS),
        "write_call_ns": _write_call(work, data),
    }


def _write_call(work: Path, data: memoryview) -> Estimate:
    """Measures the cost of a call, on a page that is dirty already, so only the copy grows with the size.

    It is so short that the look at the clock counts, and that medians are needed: a mean has the pauses of a busy machine. The file
    has one page: in a large folio, some file systems look at each of its blocks.
    """
    path = work / "call"
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        call = _call_of_medians(
            lambda part: _timed(lambda: os.pwrite(file, part, 0), len(part)),
            [data[:few] for few in range(64, 4096, 512)],
        )
    finally:
        os.close(file)
        path.unlink()
    nothing = [_timed(lambda: 0, 0) for _ in range(_LOOKS)]
    return call.less(statistics.median(nothing)).at_least(0)


def _reduced(work: Path, background: int, until: int) -> Estimate:
    """Returns the bandwidth of page cache while the flusher thread writes back."""
    data = _written(_PIECE)
    path = work / "reduced"
    os.sync()
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    times = []
    try:
        for written in range(0, until, _PIECE):
            took = _timed(lambda: os.write(file, data), _PIECE)
            if written >= background:
                times.append(took / _PIECE)
    finally:
        os.close(file)
        path.unlink()
    if len(times) < 2:
        raise InputError("the limits of dirty page cache are so close that writes during writeback cannot be measured", "raise vm.dirty_ratio or vm.dirty_bytes")  # fmt: skip
    return estimate.mean(times).inverse(_SECOND_NS)


def _library_buffer(work: Path) -> int:
    """Returns the size of the buffer that the C library gives a file here."""
    library = ctypes.CDLL(None)
    library.fopen.restype = ctypes.c_void_p
    library.fputc.argtypes = [ctypes.c_int, ctypes.c_void_p]
    library.fclose.argtypes = [ctypes.c_void_p]
    library.__fbufsize.restype = ctypes.c_size_t
    library.__fbufsize.argtypes = [ctypes.c_void_p]
    path = work / "buffer"
    stream = library.fopen(os.fsencode(path), b"w")
    if not stream:
        raise OSError(errno.EIO, "the C library cannot open a file")
    library.fputc(0, stream)
    size = int(library.__fbufsize(stream))
    library.fclose(stream)
    path.unlink()
    return size
