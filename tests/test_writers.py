"""Who makes page cache dirty: writers.jsonl, without a kernel. The histograms are written as the kernel writes them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from syncline.record import file_paths, writers
from syncline.record.errors import RecordError
from syncline.record.processes import Tasks
from syncline.record.tracefs import Instance
from syncline.record.writers import Writers

DIRTIED = "writeback/writeback_dirty_folio"
WRITTEN_BACK = "g/writepages"
DISK, PARTITION, BTRFS = 8 << 20, 8 << 20 | 1, 45


def by_writer(*rows: tuple[str, int, str, int, int], dropped: int = 0) -> str:
    """The text of the kernel: strings fill 50 bytes, names of threads 16, numbers 10."""
    lines = [
        f"{{ name: {bdi:<50}, ino: {ino:10}, common_pid: {comm:<16}[{tid:10}] }} hitcount: {count:10}"
        for bdi, ino, comm, tid, count in rows
    ]
    return histogram("name,ino,common_pid.execname", lines, dropped)


def histogram(keys: str, lines: list[str], dropped: int = 0) -> str:
    info = f"# trigger info: hist:keys={keys}:vals=hitcount:sort=hitcount:size=16384 [active]"
    totals = f"Totals:\n    Hits: 9\n    Entries: {len(lines)}\n    Dropped: {dropped}\n"
    return "\n".join(["# event histogram", "#", info, "#", "", *lines, "", totals])


def by_device(*rows: tuple[int, str]) -> str:
    lines = [f"{{ dev: {dev:10}, bdi: {bdi:<50} }} hitcount: {3:10}" for dev, bdi in rows]
    return histogram("dev,bdi", lines)


class Kernel:
    """An instance of plain files."""

    def __init__(self, folder: Path) -> None:
        self.instance = Instance(folder, folder)
        self.tasks = Tasks()
        for event in (DIRTIED, WRITTEN_BACK):
            (folder / "events" / event).mkdir(parents=True)
            (folder / "events" / event / "trigger").write_text("")
        self.shows("")

    def shows(self, dirtied: str, written_back: str = "") -> None:
        for event, text in ((DIRTIED, dirtied), (WRITTEN_BACK, written_back)):
            path = self.instance.folder / "events" / event / "hist"
            path.write_bytes(os.fsencode(text))

    def triggers(self, event: str) -> str:
        return (self.instance.folder / "events" / event / "trigger").read_text()

    def record(self, written_back: str | None = WRITTEN_BACK) -> Writers:
        return Writers(self.instance, written_back, self.tasks)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    monkeypatch.setattr(writers, "_block_devices", lambda: {DISK, PARTITION})
    return Kernel(tmp_path)


def rows_of(found: Writers, folder: Path, files: set[tuple[int, int]]) -> list[dict[str, Any]]:
    found.finish()
    found.write(folder / "writers.jsonl", files)
    return [json.loads(line) for line in (folder / "writers.jsonl").read_text().splitlines()]


def test_a_line_for_each_file_and_thread(kernel: Kernel, tmp_path: Path) -> None:
    found = kernel.record()
    assert kernel.triggers(DIRTIED).startswith("hist:keys=name,ino,common_pid.execname")
    assert kernel.triggers(WRITTEN_BACK).startswith("hist:keys=dev,bdi")
    kernel.shows(
        by_writer(("8:0", 12, "cp", 7, 300), ("8:0", 12, "dd", 8, 20), ("btrfs-1", 12, "dd", 8, 1)),
        by_device((PARTITION, "8:0"), (BTRFS, "btrfs-1")),
    )
    assert rows_of(found, tmp_path, set()) == [
        {"dev": PARTITION, "ino": 12, "tid": 7, "comm": "cp", "folios": 300},
        {"dev": PARTITION, "ino": 12, "tid": 8, "comm": "dd", "folios": 20},
        {"dev": BTRFS, "ino": 12, "tid": 8, "comm": "dd", "folios": 1},
    ]


def test_of_several_file_systems_on_a_disk_the_one_with_the_file_counts(
    kernel: Kernel, tmp_path: Path
) -> None:
    found = kernel.record()
    kernel.shows(
        by_writer(*(("8:0", ino, "cp", 7, 1) for ino in (12, 13, 14, PARTITION))),
        by_device((PARTITION, "8:0"), (PARTITION + 1, "8:0")),
    )
    files = {(PARTITION + 1, 12), (PARTITION, 13), (PARTITION + 1, 13)}
    places = [
        (row.get("dev"), row.get("bdi"), row.get("reason"))
        for row in rows_of(found, tmp_path, files)
    ]
    assert places == [
        (PARTITION + 1, None, None),
        (None, "8:0", "several file systems of its disk may have it"),
        (None, "8:0", "it was not seen to be written back"),
        (None, "8:0", "it is a block device"),
    ]


def test_without_the_probe_no_file_system_is_known(kernel: Kernel, tmp_path: Path) -> None:
    found = kernel.record(None)
    kernel.shows(by_writer(("8:0", 12, "cp", 7, 1)), by_device((PARTITION, "8:0")))
    [row] = rows_of(found, tmp_path, {(PARTITION, 12)})
    assert "dev" not in row
    assert row["reason"]


@pytest.mark.parametrize(
    "comm",
    ["a b", "x } hitcount: 9", "a\nb", "[7]", "fifteen-bytes-x", "näme", "{ name: a, ino"],
)
def test_a_thread_may_have_any_name(kernel: Kernel, tmp_path: Path, comm: str) -> None:
    comm = comm.encode()[:15].decode(errors="surrogateescape")
    found = kernel.record()
    # The kernel counts bytes.
    fill = 16 - len(os.fsencode(comm))
    shown = by_writer(("8:0", 12, "COMM", 7, 3), ("8:0", 13, "cp", 8, 4))
    kernel.shows(shown.replace(f"{'COMM':<16}", comm + " " * fill), by_device((PARTITION, "8:0")))
    rows = rows_of(found, tmp_path, set())
    assert [(row["ino"], row["tid"], row["folios"]) for row in rows] == [(12, 7, 3), (13, 8, 4)]
    assert rows[0]["comm"] == comm.encode(errors="surrogateescape").decode(errors="replace")


def test_bytes_that_are_no_text_end_nothing(kernel: Kernel, tmp_path: Path) -> None:
    found = kernel.record()
    kernel.shows(by_writer(("8:0", 12, "a\udcff", 7, 3)), by_device((PARTITION, "8:0")))
    assert [row["comm"] for row in rows_of(found, tmp_path, set())] == ["a\ufffd"]


def test_a_histogram_that_is_half_full_is_emptied(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "_SIZE", 4)
    found = kernel.record()
    three = [("8:0", ino, "cp", 7, 10) for ino in (12, 13, 14)]
    kernel.shows(by_writer(*three, dropped=2))
    found.poll()
    assert kernel.triggers(DIRTIED).rstrip().endswith(":clear")
    kernel.shows(
        by_writer(("8:0", 12, "cp", 7, 5), ("8:0", 15, "cp", 7, 1), dropped=1),
        by_device((PARTITION, "8:0")),
    )
    found.poll()
    found.poll()
    folios = {row["ino"]: row["folios"] for row in rows_of(found, tmp_path, set())}
    assert folios == {12: 15, 13: 10, 14: 10, 15: 1}
    assert (found.emptied, found.dropped) == (1, 3)


def test_the_process_of_a_thread_is_learned_while_it_runs(kernel: Kernel) -> None:
    found = kernel.record()
    kernel.shows(by_writer(("8:0", 12, "cp", os.getpid(), 1), ("8:0", 12, "gone", 2**22 + 5, 1)))
    found.poll()
    assert kernel.tasks.processes() == {os.getpid(): os.getpid()}


def test_a_kernel_without_histograms_is_refused(kernel: Kernel) -> None:
    (kernel.instance.folder / "events" / DIRTIED / "trigger").unlink()
    with pytest.raises(RecordError, match="cannot count"):
        kernel.record()


def test_files_that_are_only_written_back_are_no_syncs(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_paths, "_text", lambda path: "")
    sync = kernel.instance.folder / "events/g/fsync_enter"
    sync.mkdir()
    (sync / "trigger").write_text("")

    def by_file(*inodes: int) -> str:
        lines = [f"{{ dev: {9:10}, ino: {i:10}, gen: {1:10} }} hitcount: {2:10}" for i in inodes]
        return histogram("dev,ino,gen", lines)

    (sync / "hist").write_text(by_file(12))
    kernel.shows("", by_file(12, 13) + by_device((9, "8:0")))
    paths = file_paths.FilePaths(kernel.instance, ["g/fsync_enter"], [WRITTEN_BACK])
    assert (sync / "trigger").read_text().count("hist:") == 2
    assert kernel.triggers(WRITTEN_BACK).count("hist:") == 1
    paths.finish()
    assert (paths.syncs, paths.tids, paths.written_back) == (2, set(), {(9, 12), (9, 13)})
    # Nothing is mounted, so no path is known. Only what was synced is missed.
    assert paths.write(tmp_path / "files.jsonl") == {"files": 1, "with_path": 0}
    [row] = [json.loads(line) for line in (tmp_path / "files.jsonl").read_text().splitlines()]
    assert row["ino"] == 12
