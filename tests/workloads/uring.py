"""A minimal io_uring by system calls, without a library."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct

from workload import LIBC, checked

# System call numbers, the same on all architectures.
SETUP, ENTER = 425, 426
OP_FSYNC, OP_WRITE = 3, 23
LINK = 1 << 2
FSYNC_DATASYNC = 1
GETEVENTS = 1
OFF_SQ_RING, OFF_SQES = 0, 0x10000000
FEAT_SINGLE_MMAP = 1


class Ring:
    """A submission and a completion queue for one thread. The system calls order the memory accesses."""

    def __init__(self, entries: int) -> None:
        # struct io_uring_params: 10 words, then the offsets of both rings.
        params = bytearray(120)
        area = (ctypes.c_char * len(params)).from_buffer(params)
        self.fd = checked(LIBC.syscall(SETUP, entries, area))
        words = struct.unpack("<30I", params)
        self.entries, cq_entries, features = words[0], words[1], words[5]
        if not features & FEAT_SINGLE_MMAP:
            raise OSError("this kernel's io_uring is older than 5.4")
        sq, cq = words[10:20], words[20:30]
        self.sq_tail, self.sq_mask, self.sq_array = sq[1], sq[2], sq[6]
        self.cq_head, self.cq_tail, self.cq_mask, self.cqes = cq[0], cq[1], cq[2], cq[5]
        size = max(self.sq_array + self.entries * 4, self.cqes + cq_entries * 16)
        self.ring = mmap.mmap(
            self.fd, size, mmap.MAP_SHARED | mmap.MAP_POPULATE, offset=OFF_SQ_RING
        )
        self.sqes = mmap.mmap(
            self.fd, self.entries * 64, mmap.MAP_SHARED | mmap.MAP_POPULATE, offset=OFF_SQES
        )
        self.waiting = 0
        # Buffers must stay alive until their completion.
        self.kept: list[object] = []

    def _word(self, offset: int) -> int:
        return int(struct.unpack_from("<I", self.ring, offset)[0])

    def _push(
        self, op: int, flags: int, fd: int, offset: int, address: int, length: int, op_flags: int
    ) -> None:
        if self.waiting == self.entries:
            self.submit()
        tail = self._word(self.sq_tail)
        slot = tail & self._word(self.sq_mask)
        entry = struct.pack("<BBHiQQII", op, flags, 0, fd, offset, address, length, op_flags)
        self.sqes[slot * 64 : slot * 64 + 64] = entry.ljust(64, b"\0")
        struct.pack_into("<I", self.ring, self.sq_array + slot * 4, slot)
        struct.pack_into("<I", self.ring, self.sq_tail, (tail + 1) & 0xFFFFFFFF)
        self.waiting += 1

    def write(self, fd: int, data: bytes, offset: int, *, link: bool) -> None:
        buffer = ctypes.create_string_buffer(data, len(data))
        self.kept.append(buffer)
        self._push(
            OP_WRITE, LINK if link else 0, fd, offset, ctypes.addressof(buffer), len(data), 0
        )

    def fsync(self, fd: int, *, datasync: bool) -> None:
        self._push(OP_FSYNC, 0, fd, 0, 0, 0, FSYNC_DATASYNC if datasync else 0)

    def submit(self, wait: int = 0) -> None:
        while self.waiting or wait:
            flags = GETEVENTS if wait else 0
            self.waiting -= checked(
                LIBC.syscall(ENTER, self.fd, self.waiting, wait, flags, None, 0)
            )
            wait = 0

    def complete(self, count: int) -> list[int]:
        """Waits for `count` completions and returns their results."""
        results: list[int] = []
        while len(results) < count:
            head = self._word(self.cq_head)
            if head == self._word(self.cq_tail):
                self.submit(wait=1)
                continue
            at = self.cqes + (head & self._word(self.cq_mask)) * 16
            results.append(int(struct.unpack_from("<Qi", self.ring, at)[1]))
            struct.pack_into("<I", self.ring, self.cq_head, (head + 1) & 0xFFFFFFFF)
        self.kept.clear()
        return results

    def close(self) -> None:
        self.ring.close()
        self.sqes.close()
        os.close(self.fd)
