"""Paths of the files that are synced, written back or read, resolved while they exist: files.jsonl.

The kernel counts the syncs of each file, and of each thread, in two histograms, and in one each what else is done with them. They are read a few
times a second, so the cost depends on the number of files, not of syncs.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from syncline.record import mounts
from syncline.record.errors import RecordError
from syncline.record.file_handles import NoPath, path_of
from syncline.record.mounts import Mount
from syncline.record.tracefs import Instance, dropped_hits

FILE = "files.jsonl"
_SIZE = 1 << 14
_BY_FILE = f"hist:keys=dev,ino,gen:size={_SIZE}"
_BY_THREAD = f"hist:keys=common_pid,dev,ino:size={_SIZE}"
_ROW = re.compile(r"^\{ (.*) \} hitcount:\s*(\d+)", re.MULTILINE)
_VALUE = re.compile(r"(\w+):\s*(\d+)")
_CONTAINER_ID = re.compile(r"[0-9a-f]{64}|[0-9a-f]{32}")


class FilePaths:
    """Collects the files and the threads that sync, from its creation to `finish`."""

    def __init__(
        self,
        instance: Instance,
        events: list[str],
        others: Sequence[str] = (),
        read: Mapping[str, str] | None = None,
        *,
        has_all_mounts: bool = False,
    ) -> None:
        """Counts the hits of events with the fields dev, ino and gen.

        Args:
            instance: where it counts. The events need not be recorded there.
            events: those that begin the sync of a file.
            others: those of the writeback of a file.
            read: those of a read of a file, with the condition on their fields under which they name one.
            has_all_mounts: writes where each file system is mounted, because events name files of all.

        Raises:
            RecordError: the kernel has no histograms.
        """
        self._instance = instance
        # The histograms of each event.
        self._triggers = dict.fromkeys(events, (_BY_FILE, _BY_THREAD))
        self._triggers |= dict.fromkeys(others, (_BY_FILE,))
        self._triggers |= {
            event: (f"{_BY_FILE} if {condition}",) for event, condition in (read or {}).items()
        }
        self._of_reads = frozenset(read or ())
        self._has_all_mounts = has_all_mounts
        self._events = events
        self._files: dict[tuple[int, int, int], dict[str, Any]] = {}
        self._synced: set[tuple[int, int, int]] = set()
        self._written: set[tuple[int, int, int]] = set()
        self._threads: dict[tuple[int, int], int] = {}
        # Files and threads that a histogram has named since the last time that unused ones were forgotten.
        self._used: set[tuple[int, int, int]] = set()
        self._used_tids: set[int] = set()
        self._namespaces: dict[str, list[Mount]] = {}
        self._own = mounts.parse(_text("/proc/self/mountinfo"))
        self._own_namespace = _namespace("self")
        # All threads that have synced.
        self.tids: set[int] = set()
        # The file of each, as (device, inode); None if there were several.
        self._file_of: dict[int, tuple[int, int] | None] = {}
        self.syncs = 0
        # Syncs that the histograms had no room for.
        self.dropped = 0
        # How often the histograms were full and emptied. A file whose only sync came just then has no line.
        self.emptied = 0
        # Hits by event, of the histogram and of those that were emptied.
        self._hits = dict.fromkeys(self._triggers, 0)
        self._hits_before = dict.fromkeys(self._triggers, 0)
        for event, triggers in self._triggers.items():
            for trigger in triggers:
                self._instance.trigger(event, trigger)

    def poll(self) -> None:
        """Reads the histograms and resolves the paths of new files."""
        for event in self._triggers:
            self._poll(event)
        self.syncs = sum(self._hits[event] for event in self._events)

    def _poll(self, event: str) -> None:
        text = self._instance.histogram(event)
        by_file, by_thread = _split(text)
        for keys, _ in by_thread:
            if len(keys) == 3:
                self.tids.add(keys["common_pid"])
                self._used_tids.add(keys["common_pid"])
                tid, file = keys["common_pid"], (keys["dev"], keys["ino"])
                self._threads[file] = tid
                if self._file_of.setdefault(tid, file) != file:
                    self._file_of[tid] = None
        for keys, _ in by_file:
            key = (keys["dev"], keys["ino"], keys["gen"])
            self._used.add(key)
            # The thread that syncs it may know it by another path.
            is_first_sync = event in self._events and key not in self._synced
            if is_first_sync or key not in self._files:
                self._files[key] = self._resolve(*key)
            if is_first_sync:
                self._synced.add(key)
            if event not in self._of_reads:
                self._written.add(key)
        self._hits[event] = self._hits_before[event] + sum(count for _, count in by_file)
        if max(len(by_file), len(by_thread)) > _SIZE // 2:
            self.emptied += 1
            self._empty(event, text)

    def _empty(self, event: str, text: str) -> None:
        self.dropped += dropped_hits(text)
        self._hits_before[event] = self._hits[event]
        for trigger in self._triggers[event]:
            with contextlib.suppress(RecordError):
                hist, *condition = trigger.split(" if ", 1)
                self._instance.trigger(event, " if ".join([f"{hist}:clear", *condition]))

    def only_file_of(self, tid: int) -> str | None:
        """Returns the path of the only file that a thread has synced, as far as it is known; None if there were several."""
        file = self._file_of.get(tid)
        rows = [row for key, row in {**self._files}.items() if key[:2] == file]
        return rows[0].get("path") if len(rows) == 1 else None

    def forget_unused(self) -> None:
        """Forgets the files and threads that no histogram has named since the last call, and empties the histograms. After `poll`."""
        self._files = {key: row for key, row in self._files.items() if key in self._used}
        self._synced &= self._used
        self._written &= self._used
        self.tids &= self._used_tids
        self._file_of = {tid: file for tid, file in self._file_of.items() if tid in self.tids}
        self._threads = {at: tid for at, tid in self._threads.items() if tid in self.tids}
        self._namespaces.clear()
        self._used, self._used_tids = set(), set()
        for event in self._triggers:
            if text := self._instance.histogram(event):
                self._empty(event, text)

    def finish(self) -> None:
        """Reads the histograms for the last time."""
        self.poll()
        for event in self._triggers:
            self.dropped += dropped_hits(self._instance.histogram(event))

    @property
    def written_back(self) -> set[tuple[int, int]]:
        """Device and inode of the files that were synced or written back."""
        return {(dev, ino) for dev, ino, _ in self._written}

    def write(self, file: Path) -> dict[str, int]:
        """Writes a line for each file, and one for each mount. Returns the number of files by outcome.

        Files that were only written back or read have no line without a path.
        """
        rows = {k: row for k, row in self._files.items() if k in self._synced or "path" in row}
        outcome = {"files": len(rows), "with_path": 0}
        devices = {dev for dev, _, _ in rows}
        with file.open("w") as out:
            for (dev, ino, generation), row in rows.items():
                outcome["with_path"] += "path" in row
                line = {"dev": dev, "ino": ino, "generation": generation, **row}
                out.write(json_line(line) + "\n")
            for mount in mounts.parse(_text("/proc/self/mountinfo")):
                if self._has_all_mounts or mount.dev in devices:
                    line = {"dev": mount.dev, "mount": mount.point, "root": mount.root}
                    out.write(json_line(line) + "\n")
        return outcome

    def _resolve(self, dev: int, ino: int, generation: int) -> dict[str, Any]:
        tid = self._threads.get((dev, ino))
        namespace = _namespace(str(tid)) if tid is not None else ""
        row: dict[str, Any] = {}
        try:
            row["path"] = self._path(self._own_mounts(dev), "", ino, generation)
        except NoPath as error:
            row["reason"] = str(error)
        if tid is not None and namespace not in ("", self._own_namespace):
            self._resolve_inside(row, tid, namespace, dev, ino, generation)
        return row

    def _own_mounts(self, dev: int) -> list[Mount]:
        found = [mount for mount in self._own if mount.dev == dev]
        if not found:
            # It was mounted after the start of the recording.
            self._own = mounts.parse(_text("/proc/self/mountinfo"))
            found = [mount for mount in self._own if mount.dev == dev]
        return found

    def _path(self, found: list[Mount], prefix: str, ino: int, generation: int) -> str:
        """Returns the path by the mount that shows most of the file system."""
        if not found:
            raise NoPath("its file system is not mounted here")
        reason = NoPath("its file system is not mounted here")
        for mount in sorted(found, key=lambda mount: len(mount.root)):
            try:
                return path_of(mount, prefix + mount.point, ino, generation)
            except NoPath as error:
                reason = error
        raise reason

    def _resolve_inside(
        self, row: dict[str, Any], tid: int, namespace: str, dev: int, ino: int, generation: int
    ) -> None:
        """Adds the path within the mount namespace of a thread, and its container."""
        if namespace not in self._namespaces:
            self._namespaces[namespace] = mounts.parse(_text(f"/proc/{tid}/mountinfo"))
        inside = [mount for mount in self._namespaces[namespace] if mount.dev == dev]
        if container := _container(tid):
            row["container"] = container
        if "path" in row:
            # The folder of an overlay is often mounted in the container, too.
            found = mounts.place_in_overlay(self._namespaces[namespace], row["path"])
            if found is None:
                path = self._below_root(row["path"], dev)
                found = None if path is None else mounts.place(inside, dev, path)
            if found is not None:
                row["container_path"] = found
            return
        with contextlib.suppress(NoPath):
            row["container_path"] = self._path(inside, f"/proc/{tid}/root", ino, generation)

    def _below_root(self, path: str, dev: int) -> str | None:
        """Returns the path within the file system of a path of this mount namespace."""
        found = [m for m in self._own if m.dev == dev and mounts.within(path, m.point) is not None]
        if not found:
            return None
        mount = max(found, key=lambda mount: len(mount.point))
        return mount.root.rstrip("/") + (mounts.within(path, mount.point) or "")


def json_line(values: dict[str, Any]) -> str:
    """Returns a line of a table without its end."""
    text = json.dumps(values, ensure_ascii=False)
    # A name may hold bytes that are no UTF-8.
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _split(text: str) -> tuple[list[tuple[dict[str, int], int]], list[tuple[dict[str, int], int]]]:
    """Returns the rows of the histogram by file and of the one by thread: keys and count."""
    by_file, by_thread = [], []
    for keys, count in _ROW.findall(text):
        values = {name: int(value) for name, value in _VALUE.findall(keys)}
        if "common_pid" in values:
            by_thread.append((values, int(count)))
        elif "gen" in values:
            by_file.append((values, int(count)))
    return by_file, by_thread


def _namespace(pid: str) -> str:
    with contextlib.suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/mnt").readlink())
    return ""


def _container(tid: int) -> str | None:
    """Returns the id of a thread's container: the last part of its cgroup that looks like one."""
    found = _CONTAINER_ID.findall(_text(f"/proc/{tid}/cgroup"))
    return found[-1] if found else None


def _text(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(errors="surrogateescape")
    return ""
