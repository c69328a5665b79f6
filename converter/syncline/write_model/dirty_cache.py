"""Dirty page cache as blocks of files, each with the time at which it became dirty."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

__all__ = ["Block", "DirtyCache"]


@dataclass(slots=True)
class Block:
    """Dirty bytes of a file. `is_live`: it is in the cache."""

    file: Hashable
    offset: float
    # Not its size: a sum of rounded numbers would reach into the next block.
    end: float
    dirtied_ns: float
    # Written more than once while it was dirty.
    is_active: bool
    is_live: bool = True

    @property
    def size(self) -> float:
        return self.end - self.offset


# A rest of a block, in bytes, that is only an error of rounding.
_ROUNDING = 0.01
_Heap = list[tuple[float, int, Block]]


class DirtyCache:
    """What is dirty. No byte of a file is in two blocks."""

    def __init__(self) -> None:
        self.dirty_bytes = 0.0
        self._active_bytes = 0.0
        self._files: dict[Hashable, list[Block]] = {}
        # By age, active and not. A block that is no longer live is dropped when it comes first.
        self._heaps: dict[bool, _Heap] = {False: [], True: []}
        self._count = 0

    def new_bytes(self, file: Hashable, offset: int, size: int) -> float:
        """Returns how many bytes of the range are not dirty yet."""
        end = offset + size
        known = sum(min(one.end, end) - max(one.offset, offset) for one in self._overlapping(file, offset, end))  # fmt: skip
        return size - known

    def put(self, file: Hashable, offset: int, size: int, now_ns: float) -> None:
        """Makes a range dirty.

        What was dirty already stays as old as it was: for the kernel, a file is dirty since its first write. It becomes active.
        """
        end = offset + size
        at: float = offset
        if size <= 0:
            return
        for old in list(self._overlapping(file, offset, end)):
            self._remove(old)
            first, last = max(old.offset, offset), min(old.end, end)
            if old.offset < first:
                self._add(Block(file, old.offset, first, old.dirtied_ns, old.is_active))
            if at < first:
                self._add(Block(file, at, first, now_ns, False))
            self._add(Block(file, first, last, old.dirtied_ns, True))
            if last < old.end:
                self._add(Block(file, last, old.end, old.dirtied_ns, old.is_active))
            at = last
        if at < end:
            self._add(Block(file, at, end, now_ns, False))

    def oldest_ns(self) -> float | None:
        """Returns since when the oldest block is dirty, or None if nothing is dirty."""
        tops = [one.dirtied_ns for kind in (False, True) if (one := self._top(kind)) is not None]
        return min(tops, default=None)

    def clean(self, most_bytes: float, *, is_by_age: bool) -> float:
        """Writes back up to `most_bytes` of one block, and returns how much.

        Args:
            is_by_age: takes the oldest block. Otherwise the oldest one that is not active, after some of the active blocks
                have been made inactive, so that active ones are not more than half of all.
        """
        if not is_by_age:
            self._balance()
        tops = [one for kind in (False, True) if (one := self._top(kind)) is not None]
        if not tops:
            return 0.0
        block = min(tops, key=lambda one: one.dirtied_ns) if is_by_age else tops[0]
        return self.clean_block(block, most_bytes)

    def clean_block(self, block: Block, most_bytes: float) -> float:
        """Writes back up to `most_bytes` of a block from its start, and returns how much."""
        if block.size <= most_bytes + _ROUNDING:
            self._remove(block)
            return block.size
        before = block.size
        block.offset += most_bytes
        cleaned = before - block.size
        self.dirty_bytes -= cleaned
        if block.is_active:
            self._active_bytes -= cleaned
        return cleaned

    def expired(self, before_ns: float) -> list[Hashable]:
        """Returns the files that are dirty since that time or an earlier one, the oldest first."""
        ages = (
            (min(one.dirtied_ns for one in blocks), file) for file, blocks in self._files.items()
        )
        old = sorted((one for one in ages if one[0] <= before_ns), key=lambda one: one[0])
        return [file for _, file in old]

    def next_block(self, file: Hashable, place: float, before_ns: float) -> Block | None:
        """Returns the first block of a file, from a place on, that is dirty since that time or an earlier one."""
        blocks = self._files.get(file, [])
        first = bisect_left(blocks, place, key=lambda one: one.offset)
        return next((one for one in blocks[first:] if one.dirtied_ns <= before_ns), None)

    def clean_file(self, file: Hashable) -> float:
        """Writes back all of a file, and returns how much."""
        blocks = list(self._files.get(file, []))
        for block in blocks:
            self._remove(block)
        return sum(one.size for one in blocks)

    def drop(self, file: Hashable, start: int) -> None:
        """Forgets what is dirty of a file from a place on: the file was cut there, or deleted."""
        for block in list(self._overlapping(file, start, float("inf"))):
            self._remove(block)
            if block.offset < start:
                self._add(Block(file, block.offset, start, block.dirtied_ns, block.is_active))

    def clean_all(self) -> float:
        """Writes back all of all files, and returns how much."""
        return sum(self.clean_file(file) for file in list(self._files))

    def _balance(self) -> None:
        while 2 * self._active_bytes > self.dirty_bytes and (block := self._top(True)) is not None:
            heapq.heappop(self._heaps[True])
            block.is_active = False
            self._active_bytes -= block.size
            self._push(block)

    def _overlapping(self, file: Hashable, offset: float, end: float) -> Iterator[Block]:
        blocks = self._files.get(file, [])
        index = max(0, bisect_right(blocks, offset, key=lambda one: one.offset) - 1)
        while index < len(blocks) and blocks[index].offset < end:
            if blocks[index].end > offset:
                yield blocks[index]
            index += 1

    def _add(self, block: Block) -> None:
        insort(self._files.setdefault(block.file, []), block, key=lambda one: one.offset)
        self.dirty_bytes += block.size
        if block.is_active:
            self._active_bytes += block.size
        self._push(block)

    def _push(self, block: Block) -> None:
        self._count += 1
        heapq.heappush(self._heaps[block.is_active], (block.dirtied_ns, self._count, block))

    def _remove(self, block: Block) -> None:
        blocks = self._files[block.file]
        del blocks[bisect_right(blocks, block.offset, key=lambda one: one.offset) - 1]
        if not blocks:
            del self._files[block.file]
        block.is_live = False
        # Not below 0 by rounding.
        self.dirty_bytes = max(0.0, self.dirty_bytes - block.size)
        if block.is_active:
            self._active_bytes -= block.size

    def _top(self, kind: bool) -> Block | None:
        heap = self._heaps[kind]
        while heap and not heap[0][2].is_live:
            heapq.heappop(heap)
        return heap[0][2] if heap else None
