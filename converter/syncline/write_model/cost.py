"""The cost of one write: direct, synchronized, through page cache, and through the buffer of the C library.

The equations and algorithms are those of CAWL. docs/reference/write-model.md says how unclear places are read.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from .dirty_cache import DirtyCache
from .flusher import Flusher
from .parameters import Parameters

__all__ = [
    "RULES",
    "Cost",
    "Library",
    "PageCache",
    "direct_ns",
    "direct_synchronized_ns",
    "naive_ns",
    "pos_ratio",
    "synchronized_ns",
]

_SECOND_NS = 1e9
# How the kernel throttles: as the paper has it, or as mm/page-writeback.c does it.
RULES = ("kernel", "paper")

_PAGE_BYTES = 4096
# MAX_PAUSE of the kernel: the longest pause between two looks at the limits.
_MAX_PAUSE_NS = 200e6
# A write is looked at in pieces, so small that a limit lets only few of them pass.
_PIECES = 64


@dataclass(frozen=True)
class Cost:
    """The predicted cost of a write through page cache.

    `state`: `free run`, `async run` or `throttle run` at the end of the write. `dirty_bytes` are those after it.
    `made_bytes`: how many bytes went to pages that were not dirty yet; None for a write to the buffer of the C library.
    """

    ns: float
    state: str
    dirty_bytes: float
    made_bytes: float | None = None


def naive_ns(parameters: Parameters, size: float) -> float:
    """Returns size over bandwidth of the device."""
    return size / parameters.device_write_bytes_per_s * _SECOND_NS


def direct_ns(parameters: Parameters, size: int, *, is_random: bool = False) -> float:
    """Returns the cost of a direct write that is not synchronized. The paper has none."""
    call_ns = parameters.direct_write_call_ns
    if call_ns is None:
        call_ns = parameters.sync_write_call_ns
    return call_ns + _transfer_ns(parameters, size, is_random=is_random)


def direct_synchronized_ns(parameters: Parameters, size: int, *, is_random: bool = False) -> float:
    """Returns the cost of a direct and synchronized write: a term of equation 2."""
    return parameters.sync_write_call_ns + _transfer_ns(parameters, size, is_random=is_random)


def _transfer_ns(parameters: Parameters, size: int, *, is_random: bool) -> float:
    return (parameters.seek_ns if is_random else 0.0) + naive_ns(parameters, size)


def synchronized_ns(parameters: Parameters, size: int, *, is_random: bool = False) -> float:
    """Returns the cost of a synchronized write through page cache: equation 3.

    A rest that is smaller than a block costs reading the block and writing it.
    """
    rest = size % parameters.block_size_bytes
    copy_ns = size / parameters.page_cache_bytes_per_s * _SECOND_NS
    cost = direct_synchronized_ns(parameters, size - rest, is_random=is_random) + copy_ns
    if rest:
        block = parameters.block_size_bytes
        cost += block / parameters.device_read_bytes_per_s * _SECOND_NS + naive_ns(
            parameters, block
        )
    return cost


def pos_ratio(setpoint: float, hard_limit: float, dirty: float) -> float:
    """Returns the factor of equation 1: 1 at the set point, 0 at the hard limit."""
    return 1 + ((setpoint - dirty) / (hard_limit - setpoint)) ** 3


class PageCache:
    """Writes through page cache, in the order of their times: algorithm 1.

    One process writes to one device. Nothing is dirty at the start.
    """

    def __init__(self, parameters: Parameters, rules: str = "kernel") -> None:
        if rules not in RULES:
            raise ValueError(f"rules are {' or '.join(RULES)}, not {rules!r}")
        self.parameters = parameters
        self.time_ns = 0.0
        self.written_back_bytes = 0.0
        self._cache = DirtyCache()
        self._flusher = Flusher(self._cache, parameters)
        self._is_paper = rules == "paper"
        low, high = parameters.background_limit_bytes, parameters.hard_limit_bytes
        # Below, no writer is throttled. The paper calls it the set point; the kernel's set point is halfway to the hard limit.
        self.throttled_from_bytes = (low + high) / 2
        self._setpoint = self.throttled_from_bytes if self._is_paper else (self.throttled_from_bytes + high) / 2  # fmt: skip
        self._piece_bytes = max(
            _PAGE_BYTES, int((high - low) / _PIECES) // _PAGE_BYTES * _PAGE_BYTES
        )
        # Average rate of the writer, and the time that it spent in writes: for the paper's rules.
        self._average_bytes_per_s = 0.0
        self._io_ns = 0.0

    @property
    def dirty_bytes(self) -> float:
        """Returns what is dirty, also what is under writeback."""
        return self._cache.dirty_bytes

    @property
    def state(self) -> str:
        """Returns what a writer meets now: `free run`, `async run` or `throttle run`."""
        if self.dirty_bytes >= self.throttled_from_bytes:
            return "throttle run"
        if self._is_paper:
            is_flushing = (
                self.dirty_bytes >= self.parameters.background_limit_bytes or self._has_expired()
            )
        else:
            is_flushing = self._flusher.is_busy
        return "async run" if is_flushing else "free run"

    def pass_time(self, ns: float) -> None:
        """Lets time pass in which the process does not write."""
        self.time_ns += ns
        self._flush(ns)

    def cut(self, file: Hashable, size: int) -> None:
        """Cuts a file to a size. The pages behind it become clean without writeback."""
        self._cache.drop(file, -(-size // _PAGE_BYTES) * _PAGE_BYTES)

    def sync(self, file: Hashable | None, commit_ns: float = 0.0) -> float:
        """Returns the cost of a sync, which writes back what is dirty of a file; None for all files. `commit_ns`: of the commit that it waits for."""
        cleaned = self._cache.clean_all() if file is None else self._cache.clean_file(file)
        self.written_back_bytes += cleaned
        cost = self.parameters.sync_write_call_ns + naive_ns(self.parameters, cleaned) + commit_ns
        # Meanwhile the device has no time for other files.
        self.time_ns += cost
        return cost

    def write(self, file: Hashable, offset: int, size: int, delay_ns: float = 0.0) -> Cost:
        """Returns the cost of a write, which begins after a delay."""
        self.pass_time(delay_ns)
        write = self._write_as_paper if self._is_paper else self._write
        cost, made = write(file, offset, size)
        return Cost(cost, self.state, self.dirty_bytes, made)

    def _write_as_paper(self, file: Hashable, offset: int, size: int) -> tuple[float, float]:
        """Lines 4 to 15 of the algorithm: one rate for the whole write."""
        known, dirty = self.parameters, self.dirty_bytes
        made = self._cache.new_bytes(file, offset, size)
        rate, wait_ns = known.page_cache_bytes_per_s, 0.0
        if self.state == "throttle run":
            ratio = pos_ratio(self._setpoint, known.hard_limit_bytes, dirty)
            if ratio <= 0:
                # `no more writes`: the algorithm divides by 0. The device makes room, at its bandwidth.
                rate = known.device_write_bytes_per_s
                wait_ns = (dirty - known.hard_limit_bytes) / rate * _SECOND_NS
            else:
                average = self._average_bytes_per_s or known.reduced_bytes_per_s
                rate = min(average * ratio, known.reduced_bytes_per_s)
        elif self.state == "async run":
            rate = known.reduced_bytes_per_s
        cost = wait_ns + size / rate * _SECOND_NS + known.write_call_ns
        self.time_ns += cost
        self._cache.put(file, offset, size, self.time_ns)
        total_ns = self._io_ns + cost
        if total_ns:
            self._average_bytes_per_s = (self._average_bytes_per_s * self._io_ns + size * _SECOND_NS) / total_ns  # fmt: skip
        self._io_ns = total_ns
        self._flush(cost)
        return cost, made

    def _write(self, file: Hashable, offset: int, size: int) -> tuple[float, float]:
        """The rules of the kernel: in pieces, by pages, and only new dirty pages are throttled."""
        known = self.parameters
        cost = known.write_call_ns
        self.time_ns += cost
        self._flush(cost)
        at, end, made = offset, offset + size, 0.0
        while at < end:
            until = min(end, (at // self._piece_bytes + 1) * self._piece_bytes)
            piece_ns, piece_made = self._write_piece(file, at, until)
            cost += piece_ns
            made += piece_made
            at = until
        return cost, made

    def _write_piece(self, file: Hashable, start: int, end: int) -> tuple[float, float]:
        known = self.parameters
        first = start // _PAGE_BYTES * _PAGE_BYTES
        pages = -(-end // _PAGE_BYTES) * _PAGE_BYTES - first
        new = self._cache.new_bytes(file, first, pages)
        # Nobody exceeds the hard limit.
        excess = self.dirty_bytes + new - known.hard_limit_bytes
        pause_ns = max(0.0, excess) / known.device_write_bytes_per_s * _SECOND_NS
        if pause_ns:
            self.pass_time(pause_ns)
        is_free = self.state == "free run"
        rate = known.page_cache_bytes_per_s if is_free else known.reduced_bytes_per_s
        # Making pages costs more than copying to those that are dirty already.
        made = min(new, end - start)
        cost = (made / rate + (end - start - made) / known.rewrite_bytes_per_s) * _SECOND_NS
        if self.state == "throttle run":
            # The kernel's base rate of one writer becomes the bandwidth of the device.
            limited = known.device_write_bytes_per_s * self._kernel_ratio()
            wanted_ns = new / limited * _SECOND_NS if limited else _MAX_PAUSE_NS
            cost = max(cost, min(wanted_ns, cost + _MAX_PAUSE_NS))
        self._cache.put(file, first, pages, self.time_ns + cost)
        self.pass_time(cost)
        return pause_ns + cost, made

    def _kernel_ratio(self) -> float:
        """Returns `pos_ratio` as the kernel computes it for one device: the cubic factor, times a line for the device."""
        known, dirty = self.parameters, self.dirty_bytes
        ratio = min(2.0, max(0.0, pos_ratio(self._setpoint, known.hard_limit_bytes, dirty)))
        # What the device writes in 8 s above the set point, the line is 0; a quarter before, it ends.
        span = 8 * known.device_write_bytes_per_s
        return ratio * max(0.25, 1 + (self._setpoint - dirty) / span)

    def _has_expired(self) -> bool:
        oldest = self._cache.oldest_ns()
        return oldest is not None and oldest < self.time_ns - self.parameters.dirty_expire_ns

    def _flush(self, interval_ns: float) -> None:
        """Background flush in the interval that has just passed."""
        if self._is_paper:
            self._flush_as_paper(interval_ns)
        else:
            self.written_back_bytes += self._flusher.run(self.time_ns - interval_ns, self.time_ns)

    def _flush_as_paper(self, interval_ns: float) -> None:
        """Lines 29 to 40 of the algorithm."""
        known = self.parameters
        per_ns = known.device_write_bytes_per_s / _SECOND_NS
        left = interval_ns
        while left > 0 and (oldest := self._cache.oldest_ns()) is not None:
            is_due = self.time_ns - known.dirty_expire_ns - oldest > 0
            if self.dirty_bytes < known.background_limit_bytes and not is_due:
                return
            cleaned = self._cache.clean(left * per_ns, is_by_age=False)
            self.written_back_bytes += cleaned
            if cleaned <= 0:
                return
            left -= cleaned / per_ns


class Library:
    """Writes of the C library to one file, which it collects in a buffer: algorithm 2."""

    def __init__(self, cache: PageCache, file: Hashable) -> None:
        self._cache = cache
        self._file = file
        self._pending = 0
        self._delay_ns = 0.0
        self._position = 0

    def write(self, offset: int, size: int, delay_ns: float = 0.0) -> Cost:
        """Returns the cost of fwrite(), which begins after a delay."""
        known = self._cache.parameters
        buffer = known.library_buffer_bytes
        cost = 0.0
        if offset != self._position:
            cost += self.flush().ns
            self._position = offset
        if size <= buffer - self._pending:
            cost += self._copy_ns(size)
            self._pending += size
            self._delay_ns += delay_ns + cost
        else:
            room = buffer - self._pending
            cost += self._copy_ns(room)
            start = offset - self._pending
            cost += self._cache.write(
                self._file, start, buffer, self._delay_ns + delay_ns + cost
            ).ns
            rest = size - room
            tail = rest % buffer
            if rest >= buffer:
                cost += self._cache.write(self._file, start + buffer, rest - tail).ns
            cost += self._copy_ns(tail)
            self._pending, self._delay_ns = tail, self._copy_ns(tail)
        self._position = offset + size
        return Cost(cost, self._cache.state, self._cache.dirty_bytes)

    def flush(self) -> Cost:
        """Returns the cost of fflush(), or of the flush that a seek and fclose() make."""
        cost = 0.0
        if self._pending:
            start = self._position - self._pending
            cost = self._cache.write(self._file, start, self._pending, self._delay_ns).ns
            self._pending, self._delay_ns = 0, 0.0
        return Cost(cost, self._cache.state, self._cache.dirty_bytes)

    def _copy_ns(self, size: int) -> float:
        return size / self._cache.parameters.memory_bytes_per_s * _SECOND_NS
