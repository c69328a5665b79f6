"""What the recorder reads of the kernel, and how often: the start of a recording should take no longer than it must."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from syncline.record import kernel_facts, probe_group, probes
from syncline.record.btf import Btf
from syncline.record.kernel_facts import Types
from syncline.record.probe_group import ProbeGroup

from tests.small_btf import SmallBtf


def test_the_types_of_the_kernel_are_indexed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Indexing them takes longer than anything else at the start; those of a module may change when it is loaded again."""
    types = SmallBtf()
    types.int("int", 4)
    (tmp_path / "vmlinux").write_bytes(types.data())
    module = SmallBtf(types.next, len(types.names))
    module.int("other", 8)
    (tmp_path / "ext4").write_bytes(module.data())
    read: list[str] = []
    before = Btf.read
    monkeypatch.setattr(
        Btf, "read", lambda file, base=None: read.append(file.name) or before(file, base)
    )
    for _ in range(3):
        found = Types(tmp_path)
        assert found[""] is not None
        assert found["ext4"] is not None
    assert read == ["vmlinux", "ext4", "ext4", "ext4"]
    # Another kernel, as in the tests.
    os.utime(tmp_path / "vmlinux", ns=(1, 1))
    assert Types(tmp_path)[""] is not None
    assert read[4:] == ["vmlinux"]


def test_a_kernel_without_types_says_why_each_time(tmp_path: Path) -> None:
    for _ in range(2):
        found = Types(tmp_path)
        assert found[""] is None
        assert "No such file" in found.problems[""]


@pytest.mark.parametrize("has_files", [False, True])
def test_the_group_asks_for_what_the_route_has_asked_for(
    has_files: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of functions is kept for the same names, and is long."""
    monkeypatch.setattr(probe_group.dynamic_events, "free_group", lambda _: "group")
    asked: list[frozenset[str]] = []

    class Read(Exception):
        pass

    def read(_tracefs: Path, wanted: set[str], *_: object) -> None:
        asked.append(frozenset(wanted))
        raise Read

    monkeypatch.setattr(kernel_facts, "read_kernel", read)
    from syncline.record import routes

    monkeypatch.setattr(routes, "_require_tracefs", lambda _: tmp_path)
    with pytest.raises(Read):
        routes._dynamic_events(Path("/"), "machine")
    with pytest.raises(Read):
        ProbeGroup(tmp_path, has_files=has_files).define({"ext4"})
    assert asked[0] == asked[1]
    assert len(asked[0]) > len(probes.load()[0]) // 2
