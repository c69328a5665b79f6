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
        # Those with something that is not durable.
        self._changed: dict[str, _Inode] = {}

    def cut(self, key: str) -> None:
        """A file was cut."""
        self._change(key).has_new_size = True

    def call(self, call: Write) -> float | None:
        """Returns how many commits a call waits for: 0 to 1. None if nothing need be durable at its return.

        It is an expected number: when the clock ticks is not recorded. For several files, their ticks are taken as the same.
        """
        if call.kind == "sync":
            keys = [call.key] if call.key else list(self._changed)
            commits = max((self._commit(key, call) for key in keys), default=0.0)
            return commits if call.is_with_commit else 0.0
        if not call.size:
            return 0.0 if call.is_durable else None
        inode = self._change(call.key)
        inode.written_ns = call.start_ns
        inode.has_new_size |= (
            call.file_size is not None and call.offset + call.size > call.file_size
        )
        return self._commit(call.key, call) if call.is_durable else None

    def _change(self, key: str) -> _Inode:
        inode = self._inodes.setdefault(key, _Inode())
        self._changed[key] = inode
        return inode

    def _commit(self, key: str, call: Write) -> float:
        inode = self._changed.get(key)
        if inode is None:
            return 0.0
        commits = 1.0
        if not inode.has_new_size:
            if call.is_datasync:
                return 0.0
            commits = self._new_times(inode)
        self._make_durable(key)
        if commits == 1:
            # A commit has the times of all files. A new size of another one waits until its data is written.
            for other in [key for key, one in self._changed.items() if not one.has_new_size]:
                self._make_durable(other)
        return commits

    def _make_durable(self, key: str) -> None:
        inode = self._changed.pop(key)
        inode.has_new_size = False
        inode.durable_ns = inode.written_ns

    def _new_times(self, inode: _Inode) -> float:
        """Returns the probability that the clock has ticked between the last write and the last one whose times are durable."""
        if inode.written_ns is None:
            return 0.0
        if inode.durable_ns is None:
            return 1.0
        passed_ns = inode.written_ns - inode.durable_ns
        return (
            min(1.0, passed_ns / self._granularity_ns)
            if self._granularity_ns
            else float(passed_ns > 0)
        )
