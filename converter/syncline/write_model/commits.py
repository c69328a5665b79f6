"""When a synchronized write, or a sync, waits for a commit of the file system.

It waits if metadata that must be durable has changed: the file has another size, or its times are others. O_DSYNC and fdatasync need
no times.
"""

from __future__ import annotations

from dataclasses import dataclass

from .writes import Write

__all__ = ["Commits"]


@dataclass
class _Inode:
    """What has changed of a file since its last commit. Times are those at which a write began; None if none has.

    `durable_ns`: the last write whose times are durable. `written_ns`: the last write.
    """

    has_new_size: bool = False
    durable_ns: int | None = None
    written_ns: int | None = None


class Commits:
    """The files of a recording. Its calls are given in the order of their starts."""

    def __init__(self, granularity_ns: float) -> None:
        # All writes between two ticks of the kernel's clock give a file the same times.
        self._granularity_ns = granularity_ns
        self._inodes: dict[str, _Inode] = {}

    def cut(self, key: str) -> None:
        """A file was cut."""
        self._inode(key).has_new_size = True

    def call(self, call: Write) -> float | None:
        """Returns how many commits a call waits for: 0 to 1. None if nothing need be durable at its return.

        It is an expected number: when the clock ticks is not recorded.
        """
        if call.kind == "sync":
            inodes = [self._inode(call.key)] if call.key else list(self._inodes.values())
            return max((self._commit(one, call) for one in inodes), default=0.0)
        inode = self._inode(call.key)
        if call.size:
            inode.written_ns = call.start_ns
            end = call.offset + call.size
            inode.has_new_size |= call.file_size is not None and end > call.file_size
        return self._commit(inode, call) if call.is_durable else None

    def _inode(self, key: str) -> _Inode:
        return self._inodes.setdefault(key, _Inode())

    def _commit(self, inode: _Inode, call: Write) -> float:
        commits = 1.0
        if not inode.has_new_size:
            if call.is_datasync:
                return 0.0
            commits = self._new_times(inode)
        # A commit has all of an inode.
        inode.has_new_size = False
        inode.durable_ns = inode.written_ns
        return commits

    def _new_times(self, inode: _Inode) -> float:
        """Returns the probability that the clock has ticked between the last write and the last one whose times are durable."""
        if inode.written_ns is None:
            return 0.0
        if inode.durable_ns is None:
            return 1.0
        passed_ns = inode.written_ns - inode.durable_ns
        return 1.0 if passed_ns >= self._granularity_ns else passed_ns / self._granularity_ns
