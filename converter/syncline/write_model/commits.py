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
    """A file. Times are those at which a write began; None if none has.

    `durable_ns`: the last write whose times are durable. `written_ns`: the last write.
    """

    durable_ns: int | None = None
    written_ns: int | None = None


class Commits:
    """The files of a recording. Its calls are given in the order of their starts."""

    def __init__(self, granularity_ns: float) -> None:
        # All writes between two ticks of the kernel's clock give a file the same times.
        self._granularity_ns = granularity_ns
        self._inodes: dict[str, _Inode] = {}
        # Files whose new size is not durable, and others whose new times are not.
        self._new_sizes: dict[str, _Inode] = {}
        self._new_times: dict[str, _Inode] = {}

    def cut(self, key: str) -> None:
        """A file was cut."""
        self._change(key, has_new_size=True)

    def call(self, call: Write) -> float | None:
        """Returns how many commits a call waits for: 0 to 1. None if nothing need be durable at its return.

        It is an expected number: when the clock ticks is not recorded. For several files, their ticks are taken as the same.
        """
        if call.kind == "sync":
            keys = [call.key] if call.key else [*self._new_sizes, *self._new_times]
            commits = max((self._commit(key, call) for key in keys), default=0.0)
            return commits if call.is_with_commit else 0.0
        if not call.size:
            return 0.0 if call.is_durable else None
        end = call.offset + call.size
        has_new_size = call.file_size is not None and end > call.file_size
        self._change(call.key, has_new_size=has_new_size).written_ns = call.start_ns
        return self._commit(call.key, call) if call.is_durable else None

    def _change(self, key: str, *, has_new_size: bool) -> _Inode:
        inode = self._inodes.setdefault(key, _Inode())
        if has_new_size:
            self._new_sizes[key] = inode
            self._new_times.pop(key, None)
        elif key not in self._new_sizes:
            self._new_times[key] = inode
        return inode

    def _commit(self, key: str, call: Write) -> float:
        if (inode := self._new_sizes.pop(key, None)) is not None:
            commits = 1.0
        elif key not in self._new_times or call.is_datasync:
            return 0.0
        else:
            inode = self._new_times.pop(key)
            commits = self._has_new_times(inode)
        inode.durable_ns = inode.written_ns
        if commits == 1:
            # A commit has the times of all files. A new size of another one waits until its data is written.
            for other in self._new_times.values():
                other.durable_ns = other.written_ns
            self._new_times.clear()
        return commits

    def _has_new_times(self, inode: _Inode) -> float:
        """Returns the probability that the clock has ticked between the last write and the last one whose times are durable."""
        if inode.written_ns is None:
            # No write of the recording has changed them.
            return 0.0
        if inode.durable_ns is None:
            # Its times are from before the recording, so the first write changes them.
            return 1.0
        passed_ns = inode.written_ns - inode.durable_ns
        if not self._granularity_ns:
            return float(passed_ns > 0)
        return min(1.0, passed_ns / self._granularity_ns)
