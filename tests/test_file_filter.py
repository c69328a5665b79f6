"""Which operations on files the kernel keeps of a recording with a filter."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from syncline.record import file_filter, probes
from syncline.record.errors import RecordError
from syncline.record.mounts import parse
from syncline.recordings import Filter

MOUNTS = parse(
    "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "21 20 8:2 / /var/lib rw - xfs /dev/sda2 rw\n"
    "22 20 8:2 /pool/x /srv/data rw - xfs /dev/sda2 rw\n"
)
OF_FILE = ["dev", "magic", *(f"n{n}" for n in range(8))]
OF_BOTH = [*OF_FILE, *(f"t{n}" for n in range(8))]


def narrowed(fields: list[str], condition: str = "", **wanted: str) -> str:
    return file_filter.narrowed(condition, Filter(**wanted), fields, MOUNTS)  # type: ignore[arg-type]


def keeps(condition: str, names: list[str], to: list[str] | None = None) -> bool:
    """Whether the kernel keeps an event of a file, given its names from the file to the root of its file system."""
    values = {f"n{n}": name for n, name in enumerate([*names, *["/"] * 8][:8])}
    values |= {f"t{n}": name for n, name in enumerate([*(to or []), *["/"] * 8][:8])}
    found = []
    for field, how, text in re.findall(r'(\w+) (==|!=|~) "([^"]*)"', condition):
        is_same = values[field] == text
        met = {"==": is_same, "!=": not is_same, "~": values[field].startswith(text[:-1])}
        found.append(met[how])
    assert found
    return any(found)


def test_a_path_is_the_name_of_its_last_folder_at_any_depth() -> None:
    condition = narrowed(OF_FILE, path="/var/lib/app/")
    assert keeps(condition, ["app"])
    assert keeps(condition, ["f", "b", "a", "app"])
    assert not keeps(condition, ["f", "app2"])
    # The event has eight names, so that of the folder may be above them.
    deep = [*"hgfedcba", "app"]
    assert keeps(condition, deep)
    assert keeps(condition, deep[:8])
    assert not keeps(condition, deep[:7])
    # A part of a name.
    condition = narrowed(OF_FILE, path="/var/lib/app")
    assert keeps(condition, ["f", "app2"])
    assert not keeps(condition, ["f", "ap"])
    # Either name of a rename.
    condition = narrowed(OF_BOTH, path="/var/lib/app/")
    assert keeps(condition, ["f.tmp", "tmp"], ["f", "app"])
    assert not keeps(condition, ["f.tmp", "tmp"], ["f", "bpp"])
    assert keeps(condition, ["f.tmp", "tmp"], deep)


@pytest.mark.parametrize(
    "path", ["/", "/var", "/var/l", "/var/lib", "/var/lib/", "/srv/data", "/srv/", "/a*b/", 'x"y']
)
def test_a_path_whose_name_may_be_missing_leaves_out_nothing(path: str) -> None:
    """Files of what is mounted there begin below it; and some names cannot be said to the kernel."""
    assert narrowed(OF_FILE, path=path) == ""
    assert narrowed(OF_FILE, "fmode & 2", path=path) == "fmode & 2"


def test_an_event_without_names_is_kept() -> None:
    assert narrowed(["ret"], path="/var/lib/app/") == ""


def test_a_name_of_a_thread() -> None:
    assert narrowed(["ret"], comm="db") == 'COMM == "db"'
    assert narrowed(["ret"], "ret < 0 || ret > 5", comm="db") == '(ret < 0 || ret > 5) && (COMM == "db")'  # fmt: skip
    assert narrowed(["ret"], comm='a"b') == ""


def test_what_the_kernel_is_told_of_each_probe() -> None:
    """All begins name their file by all levels, but an open's, whose end does."""
    found = {probe.event: probe for probe in probes.load()[0] if probe.of_files}
    named = {
        event
        for event, probe in found.items()
        if narrowed([name for name, _ in probe.arguments], path="/var/lib/app/")
    }
    begins = {event for event in found if not event.endswith("_end")}
    assert named == begins - {"file_open", "file_exit"} | {"file_open_end"}


class FakeBuffer:
    """A tracing instance that keeps what is written to it."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.written: dict[str, str] = {}
        self.instance = SimpleNamespace(set_threads=self.follow, write=self.written.__setitem__)
        self.is_closed = False

    def follow(self, tids: set[int]) -> None:
        assert self.written == {"options/event-fork": "1"}
        self.threads |= tids


class FakeRing:
    def __init__(self, buffer: FakeBuffer) -> None:
        self.buffers: list[FakeBuffer] = []
        self._buffer = buffer

    def add(self, name: str, buffer_kb: int) -> FakeBuffer:
        assert (name, buffer_kb) == ("files", 256)
        self.buffers.append(self._buffer)
        return self._buffer

    def remove(self, buffer: FakeBuffer) -> None:
        self.buffers.remove(buffer)


def test_the_buffer_of_a_process_follows_all_its_threads() -> None:
    end = threading.Event()
    threads = [threading.Thread(target=end.wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        buffer = FakeBuffer()
        found = file_filter.buffer_of_process(FakeRing(buffer), os.getpid(), 1024)  # type: ignore[arg-type]
        assert found is buffer
        assert {int(task.name) for task in Path("/proc/self/task").iterdir()} <= buffer.threads
    finally:
        end.set()


def test_a_kernel_that_cannot_follow_threads_records_all_of_them() -> None:
    buffer = FakeBuffer()

    def refuse(_: set[int]) -> None:
        raise RecordError("no")

    buffer.instance.set_threads = refuse
    ring = FakeRing(buffer)
    assert file_filter.buffer_of_process(ring, os.getpid(), 1024) is None  # type: ignore[arg-type]
    assert ring.buffers == []
