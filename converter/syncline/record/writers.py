"""Who makes page cache dirty, by file: writers.jsonl.

Later a kernel worker may write this page cache, and then nothing else says whose it was. The kernel counts the
folios that each thread makes dirty in a histogram, and records no event for them.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from syncline.record.errors import RecordError
from syncline.record.file_paths import json_line
from syncline.record.processes import Tasks
from syncline.record.tracefs import Instance, dropped_hits

FILE = "writers.jsonl"
_DIRTIED = "writeback/writeback_dirty_folio"
_SIZE = 1 << 14
# `name` is that of the backing device: `major:minor` of the whole disk, or such as `btrfs-1`.
_BY_WRITER = f"hist:keys=name,ino,common_pid.execname:size={_SIZE}"
_BY_DEVICE = "hist:keys=dev,bdi:size=1024"
# The kernel fills a name up to 16 bytes. It may hold any character.
_WRITER = re.compile(
    r"^\{ name: (\S*) *, ino: *(\d+), common_pid: (.{1,16}?) *\[ *(\d+)\] \} hitcount: *(\d+)",
    re.MULTILINE | re.DOTALL,
)
_DEVICE = re.compile(r"^\{ dev: *(\d+), bdi: (\S+) *\} hitcount:", re.MULTILINE)


class _Key(NamedTuple):
    bdi: str
    ino: int
    tid: int
    # The thread's name when it first made a folio of this file dirty.
    comm: str


class Writers:
    """Counts folios by file and thread, from its creation to `finish`."""

    def __init__(self, instance: Instance, written_back: str | None, tasks: Tasks) -> None:
        """Begins to count.

        Args:
            instance: where it counts. The event that is counted need not be recorded there.
            written_back: an event with the fields `dev` and `bdi` for each file that is written back.
            tasks: gets the processes of the threads.

        Raises:
            RecordError: the kernel has no histograms.
        """
        self._instance = instance
        self._written_back = written_back
        self._tasks = tasks
        self._tids: set[int] = set()
        # Folios, by what was counted until the histogram was last emptied, and since then.
        self._before: dict[_Key, int] = {}
        self._since: dict[_Key, int] = {}
        self._devices: dict[str, set[int]] = {}
        # Folios that the histogram had no room for.
        self.dropped = 0
        # How often it was emptied because it was half full.
        self.emptied = 0
        self._instance.trigger(_DIRTIED, _BY_WRITER)
        if written_back is not None:
            with contextlib.suppress(RecordError):
                self._instance.trigger(written_back, _BY_DEVICE)

    def poll(self) -> None:
        """Reads the histogram, and learns the processes of new threads while they run."""
        text = self._instance.histogram(_DIRTIED)
        self._since = {
            _Key(bdi, int(ino), int(tid), comm): int(folios)
            for bdi, ino, comm, tid, folios in _WRITER.findall(text)
        }
        new = {key.tid for key in self._since} - self._tids
        self._tasks.scan_threads(new)
        self._tids |= new
        if len(self._since) > _SIZE // 2:
            self._keep(text)
            self.emptied += 1
            with contextlib.suppress(RecordError):
                self._instance.trigger(_DIRTIED, f"{_BY_WRITER}:clear")

    def finish(self) -> None:
        """Reads the histogram for the last time."""
        self.poll()
        self._keep(self._instance.histogram(_DIRTIED) if self._since else "")

    def forget_unused(self) -> None:
        """Forgets what was counted until the last call, and empties the histogram. After `poll`."""
        self._before = {}
        self._keep(self._instance.histogram(_DIRTIED) if self._since else "")
        self._tids = {key.tid for key in self._before}
        with contextlib.suppress(RecordError):
            self._instance.trigger(_DIRTIED, f"{_BY_WRITER}:clear")

    def _keep(self, text: str) -> None:
        for key, folios in self._since.items():
            self._before[key] = self._before.get(key, 0) + folios
        self._since = {}
        self.dropped += dropped_hits(text)

    def write(self, file: Path, written_back: set[tuple[int, int]]) -> None:
        """Writes a line for each file and thread. After `poll` or `finish`.

        Args:
            file: the table.
            written_back: (device of the file system, inode) of the files that were written back.
        """
        if self._written_back is not None:
            for dev, bdi in _DEVICE.findall(self._instance.histogram(self._written_back)):
                self._devices.setdefault(bdi, set()).add(int(dev))
        devices = _block_devices()
        counted = Counter(self._before)
        counted.update(self._since)
        with file.open("w") as out:
            for key, folios in counted.items():
                place = self._place(key, written_back, devices)
                line = {"ino": key.ino, "tid": key.tid, "comm": key.comm, "folios": folios}
                out.write(json_line({**place, **line}) + "\n")

    def _place(
        self, key: _Key, written_back: set[tuple[int, int]], devices: set[int]
    ) -> dict[str, int | str]:
        """Returns the file system of a file. The kernel gives the disk, which may hold several."""
        if key.ino in devices:
            # The page cache of a block device holds the metadata of its file system.
            return {"bdi": key.bdi, "reason": "it is a block device"}
        found = self._devices.get(key.bdi, set())
        if len(found) > 1:
            found = {dev for dev in found if (dev, key.ino) in written_back}
        if len(found) == 1:
            return {"dev": next(iter(found))}
        several = "several file systems of its disk may have it"
        return {
            "bdi": key.bdi,
            "reason": several if len(found) > 1 else "it was not seen to be written back",
        }


def _block_devices() -> set[int]:
    """Returns the numbers of the block devices as the kernel keeps them: major << 20 | minor."""
    found = set()
    with contextlib.suppress(OSError):
        for device in Path("/sys/dev/block").iterdir():
            major, _, minor = device.name.partition(":")
            found.add(int(major) << 20 | int(minor))
    return found
